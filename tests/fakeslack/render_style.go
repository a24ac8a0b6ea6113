package fakeslack

// style is a plain likeness of Slack's, with no picture or font from elsewhere.
const style = `body { font: 15px/1.46 Lato, "Helvetica Neue", Arial, sans-serif; color: #1d1c1d; background: #fff;
  max-width: 46em; margin: 2em auto; padding: 0 1em }
h1 { font-size: 17px; border-bottom: 1px solid #ddd; padding-bottom: .6em }
h2 { font-size: 18px; margin: .4em 0 }
hr { border: 0; border-top: 1px solid #ddd; margin: .8em 0 }
article { margin: 1em 0; padding: .3em .8em }
.reply { margin-left: 2.6em; border-left: 3px solid #e8e8e8 }
.deleted { opacity: .45; text-decoration: line-through }
.app { font-size: 10px; font-weight: 400; background: #e8e8e8; border-radius: 2px; padding: 1px 3px }
.dim, .only { color: #616061; font-size: 12px }
.section { margin: .4em 0; white-space: pre-wrap; overflow-wrap: anywhere }
.section::after { content: ""; display: block; clear: both }
.accessory { float: right; margin-left: 1em }
.fields { display: grid; grid-template-columns: 1fr 1fr; gap: .4em 1em }
.context { color: #616061; font-size: 13px; margin: .4em 0; white-space: pre-wrap; overflow-wrap: anywhere }
.context span + span { margin-left: .5em }
.actions { margin: .6em 0; display: flex; flex-wrap: wrap; gap: .5em }
.button { display: inline-block; border: 1px solid #bbb; border-radius: 4px; padding: .25em .8em; font-weight: 700; font-size: 14px }
.primary { background: #007a5a; border-color: #007a5a; color: #fff }
.danger { border-color: #e01e5a; color: #e01e5a }
.picture { border: 1px dashed #bbb; padding: .2em .5em; color: #616061; font-size: 12px }
.link { color: #1264a3 }
code, pre { background: #f6f6f6; border: 1px solid #e0e0e0; border-radius: 3px; padding: 1px 3px; font-size: 12px }
pre { padding: .5em; margin: .3em 0 }
.modal { border: 1px solid #ccc; border-radius: 8px; box-shadow: 0 3px 14px #0002; max-width: 34em; padding: 0 1.2em 1em }
.head { font-size: 18px; font-weight: 900; padding: .8em 0; border-bottom: 1px solid #eee }
.foot { display: flex; justify-content: flex-end; gap: .6em; margin-top: 1em }
.input { margin: .8em 0 }
.input label { display: block; font-weight: 700; margin-bottom: .3em }
.field { border: 1px solid #999; border-radius: 4px; padding: .45em .7em; min-height: 1.4em; white-space: pre-wrap }
.tall { min-height: 5em }
`
