package operator

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// tokenPrefix lets secret scanners and people recognise a token where it has no business to be.
const tokenPrefix = "cs_op_"

// tokenBytes is the entropy of a token. With this much a plain SHA-256 is a safe thing to store.
const tokenBytes = 32

// NewToken makes a terminal token for an operator: "cs_op_" and 32 random bytes in unpadded base64url. hash is what the
// configuration stores of it. The error is that of the system's random source.
func NewToken() (token, hash string, err error) {
	random := make([]byte, tokenBytes)
	if _, err := rand.Read(random); err != nil {
		return "", "", fmt.Errorf("make an operator token: %w", err)
	}
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	return token, HashToken(token), nil
}

// HashToken is the SHA-256 of a token as the configuration stores it: 64 lower-case hex digits.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
