package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/need"
	"pgregory.net/rapid"
)

const (
	spkiPEM  = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
	curvePEM = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
)

// relabel puts the content of a block under another label.
func relabel(block, label string) string {
	b, _ := pem.Decode([]byte(block))
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: b.Bytes}))
}

func TestPublicOnly(t *testing.T) {
	keyDER, _ := pem.Decode([]byte(keyPEM))
	bare := strings.Split(keyPEM, "\n")[1]
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"empty", "", true},
		{"blank lines", "\n \r\n\n", true},
		{"certificate", certPEM, true},
		{"two certificates", certPEM + "\n" + certPEM, true},
		{"without a final line end", strings.TrimSuffix(certPEM, "\n"), true},
		{"CRLF", strings.ReplaceAll(certPEM, "\n", "\r\n"), true},
		{"public key", spkiPEM, true},
		{"named curve", curvePEM, true},
		{"trusted certificate", relabel(certPEM, "TRUSTED CERTIFICATE"), true},
		{"comment", "# Issuer: CN=F\u0151tan\u00fas\u00edtv\u00e1ny O=NetLock Kft.\n" + certPEM, true},
		{"fingerprint", "# SHA256 Fingerprint: " + strings.Repeat("ab:", 31) + "ab\n# sha1: " + strings.Repeat("0a", 20) + "\n" + certPEM, true},
		{"serial", "# Serial: 149035022934012345678901234567890123456789\n" + certPEM, true},
		{"title", "GlobalSign Root CA\n==================\n" + certPEM, true},
		{"headers", "Bag Attributes\n    friendlyName: x\n    localKeyID: 01 02\nsubject=C = US, O = x\n\nissuer=/C=US/O=x\n" + certPEM, true},
		{"ruler", "# " + strings.Repeat("=", 70) + "\n" + certPEM, true},

		{"private key", keyPEM, false},
		{"key behind a certificate", certPEM + keyPEM, false},
		{"key before a certificate", keyPEM + certPEM, false},
		{"key labelled as certificate", relabel(keyPEM, "CERTIFICATE"), false},
		{"key labelled as public key", relabel(keyPEM, "PUBLIC KEY"), false},
		{"key labelled as parameters", relabel(keyPEM, "EC PARAMETERS"), false},
		{"certificate labelled as key", relabel(certPEM, "RSA PRIVATE KEY"), false},
		{"curve labelled as certificate", relabel(curvePEM, "CERTIFICATE"), false},
		{"PKCS#7", relabel(certPEM, "PKCS7"), false},
		{"key in a comment", "# " + strings.ReplaceAll(strings.TrimSpace(keyPEM), "\n", "\n# ") + "\n" + certPEM, false},
		{"only its base64 in a comment", certPEM + "# " + bare + "\n", false},
		{"half of its base64 in a comment", certPEM + "# " + bare[:32] + "\n", false},
		{"hexadecimal in a comment", certPEM + "# " + strings.Repeat("0a", 32) + "\n", false},
		{"base64 in a header", "friendlyName: " + bare + "\n" + certPEM, false},
		{"base64 as title", bare + "\n=====\n" + certPEM, false},
		{"base64 after the end", certPEM + bare + "\n", false},
		{"base64 alone", bare + "\n", false},
		{"DER", string(keyDER.Bytes), false},
		{"certificate and DER", certPEM + string(keyDER.Bytes), false},
		{"the word alone", certPEM + "# pRiVaTe\n", false},
		{"a word", certPEM + "hunter2\n", false},
		{"unknown header", certPEM + "password: hunter2\n", false},
		{"comment alone", "# hunter2\n", false},
		{"header alone", "label: hunter2\n", false},
		{"long comment", "# " + strings.Repeat("a ", maxLine) + "\n" + certPEM, false},
		{"NUL", "\x00" + certPEM, false},
		{"lone CR", strings.Replace(certPEM, "\n", "\r", 1), false},
		{"not UTF-8", "# \xff\n" + certPEM, false},
		{"UTF-16", strings.Join(strings.Split(keyPEM, ""), "\x00"), false},
		{"byte order mark", "\ufeff" + certPEM, false},
		{"no end", strings.Split(certPEM, "-----END")[0], false},
		{"other end", strings.Replace(certPEM, "END CERTIFICATE", "END X509 CRL", 1), false},
		{"no begin", strings.SplitN(certPEM, "\n", 2)[1], false},
		{"trailing byte in the DER", addByte(certPEM), false},
		{"encryption headers", strings.Replace(certPEM, "-----\n", "-----\nProc-Type: 4,ENCRYPTED\n\n", 1), false},
		{"empty block", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", false},
		{"five dashes", "-----\n" + certPEM, false},
		{"too large", strings.Repeat("\n", maxContent+1), false},
		{"just not too large", strings.Repeat("\n", maxContent), true},
	} {
		if got := PublicOnly([]byte(c.text)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func addByte(block string) string {
	b, _ := pem.Decode([]byte(block))
	return string(pem.EncodeToMemory(&pem.Block{Type: b.Type, Bytes: append(b.Bytes, 0)}))
}

func TestIsGitRef(t *testing.T) {
	id := strings.Repeat("a1", 20)
	who := " A B <a@b> 1700000000 +0100"
	for text, want := range map[string]bool{
		id + "\n":                             true,
		strings.Repeat("0f", 32) + "\n":       true,
		"ref: refs/heads/release.key\n":       true,
		id + " " + id + who + "\tcommit: x\n": true,
		id + " " + id + who + "\n":            true,
		"":                                    false,
		id:                                    false,
		strings.ToUpper(id) + "\n":            false,
		id + "\n" + id + "\n":                 false,
		id + "a\n":                            false,
		"ref: HEAD\n":                         false,
		"ref: refs/a b\n":                     false,
		"hunter2\n":                           false,
		id + " " + id + who + "\tx\nhunter\n": false,
		id + " " + id + "\n":                  false,
	} {
		if got := isGitRef([]byte(text)); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// TestNoKeyIsEverPublic is a law: whatever has a private key in it, wherever
// and however spelled, is not public.
func TestNoKeyIsEverPublic(t *testing.T) {
	block, _ := pem.Decode([]byte(keyPEM))
	encodings := []string{
		keyPEM,
		strings.ToLower(keyPEM[:27]) + keyPEM[27:],
		strings.ReplaceAll(keyPEM, "\n", "\r\n"),
		strings.ReplaceAll(keyPEM, "\n", " \n"),
		"-----BEGIN OPENSSH PRIV" + "ATE KEY-----\n" + base64.StdEncoding.EncodeToString(block.Bytes) + "\n-----END OPENSSH PRIV" + "ATE KEY-----\n",
		relabel(keyPEM, "CERTIFICATE"), relabel(keyPEM, "PUBLIC KEY"), relabel(keyPEM, "RSA PUBLIC KEY"), relabel(keyPEM, "TRUSTED CERTIFICATE"),
		relabel(keyPEM, "EC PARAMETERS"), relabel(keyPEM, "DH PARAMETERS"), relabel(keyPEM, "X509 CRL"), relabel(keyPEM, "ANY"),
		string(block.Bytes), base64.StdEncoding.EncodeToString(block.Bytes) + "\n",
		"# " + base64.StdEncoding.EncodeToString(block.Bytes) + "\n",
	}
	public := []string{"", "\n", certPEM, spkiPEM, curvePEM, "# comment\n", "Title\n=====\n", "subject=x\n", "\r\n", "# open"}
	rapid.Check(t, func(t *rapid.T) {
		before := strings.Join(rapid.SliceOfN(rapid.SampledFrom(public), 0, 4).Draw(t, "before"), "")
		after := strings.Join(rapid.SliceOfN(rapid.SampledFrom(public), 0, 4).Draw(t, "after"), "")
		key := rapid.SampledFrom(encodings).Draw(t, "key")
		if text := before + key + after; PublicOnly([]byte(text)) {
			t.Fatalf("got public: %q", text)
		}
	})
}

func FuzzPublicOnly(f *testing.F) {
	for _, s := range []string{"", certPEM, keyPEM, spkiPEM, curvePEM, "# x\n" + certPEM, "T\n===\n" + certPEM, certPEM + keyPEM} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !PublicOnly(data) {
			return
		}
		// Go's parser must find nothing but public blocks in it, and no more
		// than it may hold.
		for rest := data; ; {
			var b *pem.Block
			if b, rest = pem.Decode(rest); b == nil {
				break
			}
			shape, ok := shapeOf(b.Type)
			if !ok || len(b.Headers) > 0 || !shape(b.Bytes) {
				t.Fatalf("got public with a block %q", b.Type)
			}
		}
		if bytes.Contains(bytes.ToLower(data), []byte("private")) || PublicOnly(append([]byte(keyPEM), data...)) ||
			PublicOnly(append(append(bytes.Clone(data), '\n'), keyPEM...)) {
			t.Fatal("got public with a key")
		}
	})
}

// TestRealFiles holds the verdict against whatever this machine has.
func TestRealFiles(t *testing.T) {
	bundles := 0
	home, _ := os.UserHomeDir()
	homes, _ := filepath.Glob(home + "/.pyenv/versions/*/lib/python3*/site-packages/pip/_vendor/certifi/cacert.pem")
	for _, path := range append(homes, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/usr/lib/python3/dist-packages/pip/_vendor/certifi/cacert.pem") {
		if data, err := os.ReadFile(path); err == nil {
			bundles++
			if !PublicOnly(data) {
				t.Errorf("%s: got hidden, want public", path)
			}
		}
	}
	keys, certs := 0, 0
	//lint:ignore SA1019 the tests run where they were built
	filepath.WalkDir(filepath.Join(runtime.GOROOT(), "src/crypto"), func(path string, _ fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || ext != ".pem" && ext != ".key" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		private := bytes.Contains(data, []byte("PRIV"+"ATE KEY"))
		if private {
			keys++
		} else {
			certs++
		}
		if got := PublicOnly(data); got == private {
			t.Errorf("%s: got public %v, want %v", path, got, !private)
		}
		return nil
	})
	t.Logf("checked %d bundles, %d certificates and %d keys of Go's own tests", bundles, certs, keys)
	if bundles+keys+certs == 0 {
		need.Missing(t, "certificates", "neither a CA bundle nor Go's sources are here")
	}
}

// TestAgainstOpenSSL: everything public that it writes is public, and
// everything that it reads as a private key is not.
func TestAgainstOpenSSL(t *testing.T) {
	openssl := need.Program(t, "openssl")
	dir := t.TempDir()
	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command(openssl, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("openssl %s: %v", strings.Join(args, " "), err)
		}
		return out
	}
	save := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("rsa", run("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"))
	save("ec", run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"))
	save("crt", run("req", "-x509", "-new", "-key", "ec", "-subj", "/CN=x"))
	save("p12", run("pkcs12", "-export", "-in", "crt", "-inkey", "ec", "-passout", "pass:", "-name", "friend"))
	for _, c := range []struct {
		want bool
		args string
	}{
		{true, "pkey -in rsa -pubout"},
		{true, "pkey -in ec -pubout"},
		{true, "rsa -in rsa -RSAPublicKey_out"},
		{true, "req -new -key ec -subj /CN=x"},
		{true, "x509 -in crt"},
		{true, "x509 -in crt -trustout -addtrust serverAuth -setalias x"},
		{true, "x509 -in crt -subject -issuer"},
		{true, "pkcs12 -in p12 -passin pass: -nokeys"},
		{true, "ecparam -name prime256v1"},
		{true, "ecparam -name prime256v1 -param_enc explicit"},
		{true, "dhparam -dsaparam 512"},
		{true, "dsaparam 1024"},
		{false, "pkey -in rsa"},
		{false, "pkey -in rsa -traditional"},
		{false, "pkey -in ec -traditional"},
		{false, "pkey -in ec -aes128 -passout pass:x"},
		{false, "rsa -in rsa -traditional -aes128 -passout pass:x"},
		{false, "pkey -in ec -outform DER"},
		{false, "pkey -in ec -text -noout"},
		{false, "rsa -in rsa -text -noout"},
		{false, "pkcs12 -in p12 -passin pass: -nodes"},
		{false, "pkcs12 -in p12 -passin pass: -nocerts -nodes"},
		{false, "ecparam -name prime256v1 -genkey"},
		{false, "crl2pkcs7 -nocrl -certfile crt"},
	} {
		if got := PublicOnly(run(strings.Fields(c.args)...)); got != c.want {
			t.Errorf("openssl %s: got public %v, want %v", c.args, got, c.want)
		}
	}
}
