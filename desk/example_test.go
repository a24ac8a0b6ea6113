package desk_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"countersign/config"
	"countersign/desk"
	"countersign/ledger"
)

// An agent files a text; nothing is sent until an operator has approved it.
func ExampleDesk_File() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	c := config.Default()
	c.Ledger.Path = filepath.Join(dir, "ledger.db")
	c.Transports.Local = &config.Local{Dir: filepath.Join(dir, "outbox")}
	if err := ledger.Create(ctx, c.Ledger.Path); err != nil {
		panic(err)
	}

	d, err := desk.Open(ctx, c, desk.Options{})
	if err != nil {
		panic(err)
	}
	defer d.Close()
	filed, err := d.File(ctx, ledger.Filing{Agent: "quoter", Counterparty: "acme", Platform: "local", Channel: "sales", Text: "120 pumps at 430 EUR."})
	if err != nil {
		panic(err)
	}
	fmt.Println(filed.ObligationID, filed.Status, filed.Markers)
	// Output: 1 drafted [[NEW DESTINATION]]
}
