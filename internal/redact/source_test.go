package redact

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCredible(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		// By the name.
		{"DB_PASSWORD", "correct horse battery staple", true},
		{"DB_PASSWORD", "short", false},
		{"DB_PASSWORD", "aaaaaaaaaaaaaaaaaaaa", false},
		{"DB_PASSWORD", "${VAULT_DB_PASSWORD}", false},
		{"githubToken", "0123456789abcdef0123", true},
		{"AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", true},
		{"API_KEY", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", true},
		{"key", "the-name-of-some-entry", false},
		{"KEYBOARD_LAYOUT", "0123456789-abcdefg", false},
		{"SSH_AUTH_SOCK", "/tmp/ssh-XXXXabcd12/agent.1234", false},
		{"GOOGLE_APPLICATION_CREDENTIALS", "/home/u/keys/service.json", false},
		{"TOKEN_URL", "https://example.com/oauth/v2/token", false},
		{"PWD", "/home/u/projects/x1y2z3a4b5c6", false},
		// By the form.
		{"X", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", true},
		{"X", "sk-ant-api03-aB3dE5gH7jK9mN1pQ3sT5vX7z", true},
		{"", "AKIAIOSFODNN7EXAMPLE", true},
		{"", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", true},
		{"", "sk-learn-is-a-python-package", false},
		// By the look.
		{"", "Kq3vX9mN2pL7wR4tB8", true},
		{"", "a8f5k2m9q1x7c3v6b0n4", true},
		{"GITHUB_SHA", "d3b07384d113edec49eaa6238ad5ff00a1b2c3d4", false},
		{"", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", false},
		{"", "x86_64-unknown-linux-gnu", false},
		{"", "my-production-database-01", false},
		{"", "internal.eu-west-1.example.com", false},
		{"LS_COLORS", "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33:so=01;35", false},
		{"XDG_DATA_DIRS", "/usr/local/share:/usr/share:/var/lib/snapd/desktop", false},
		{"", "20240101T000000Z-0042", false},
		{"", "ThisIsJustSomeLongName", false},
		{"BROWSER_AGENT", "Mozilla/5.0-AppleWebKit/537.36", false},
		{"SSH_CONNECTION", "192.168.100.200 51234 10.0.0.1 22", false},
		{"", "version-1.23.456-rc.1+build.789", false},
	} {
		if got := credible(c.name, c.value); got != c.want {
			t.Errorf("%s=%s: got %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

func TestEnviron(t *testing.T) {
	env := []string{"GITHUB_TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a", "MINE=just some words here", "TINY=x1y2", "ABSENT=",
		"DATABASE_URL=postgres://app:hunter2@db.internal:5432/x", "REGISTRY=https://u:0123456789abcdefgh%40@r.example/",
		"CLONE=https://x-access-token-0123456789@github.com/a/b", "OTHER_TOKEN=not-looked-at-0123456789", "broken",
		"HOOK_WEBHOOK=https://hooks.example.com/services/T00/B00/abc", "CALL=https://api.example/?api_key=0123456789abcdef01&q=a"}
	values, short := Environ(env, func(n string) bool { return n != "OTHER_TOKEN" }, []string{"MINE", "TINY", "ABSENT", "NEVER"})
	want := []Value{{"GITHUB_TOKEN", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}, {"MINE", "just some words here"},
		{"DATABASE_URL", "postgres://app:hunter2@"}, {"REGISTRY", "0123456789abcdefgh%40"}, {"REGISTRY", "0123456789abcdefgh@"},
		{"CLONE", "x-access-token-0123456789"}, {"HOOK_WEBHOOK", "/services/T00/B00/abc"}, {"CALL", "0123456789abcdef01"}}
	if !slices.Equal(values, want) {
		t.Errorf("got  %v\nwant %v", values, want)
	}
	if !slices.Equal(short, []string{"TINY"}) {
		t.Errorf("short: got %v", short)
	}
}

func TestFile(t *testing.T) {
	const key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
	for _, c := range []struct {
		name, text string
		want       []Value
	}{
		{".env", "# comment with words\nexport STRIPE_KEY=\"sk_live_4eC39HqLyjWDarjtT1zdp7dc\"\nHOST=db.example.com\nPASSWORD='correct horse battery' # why\nDEBUG=true\n",
			[]Value{{"STRIPE_KEY", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"}, {"PASSWORD", "correct horse battery"}}},
		{"a/server.pem", "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUPublicPublicPublic\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n" + key + "\nshort==\n-----END PRIVATE KEY-----\n",
			[]Value{{"server.pem", key}}},
		{"sa.json", `{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\n` + key + `\n-----END PRIVATE KEY-----\n"}`,
			[]Value{{"sa.json", key}}},
		{".netrc", "machine example.com login me password abcdefgh-ijkl-0123\n", []Value{{".netrc", "abcdefgh-ijkl-0123"}}},
		{".npmrc", "//registry.npmjs.org/:_authToken=npm_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9\n", []Value{{".npmrc", "npm_0aB1cD2eF3gH4iJ5kL6mN7oP8qR9"}}},
		{"config", "[remote \"o\"]\n\turl = https://me:ghp_16C7e42F292c6912E7710c838347Ae178B4a@github.com/a/b\n", []Value{{"url", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}}},
		{"authorized_keys", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@host\n", nil},
		{"x.sqlite", "SQLite format 3\x00 password=abcdefgh-ijkl-0123", nil},
		{".env", "", nil},
	} {
		got := File(c.name, []byte(c.text))
		slices.SortFunc(got, func(a, b Value) int {
			return strings.Compare(fmt.Sprint(strings.Index(c.text, a.Text)+1000), fmt.Sprint(strings.Index(c.text, b.Text)+1000))
		})
		got = slices.Compact(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add("A=b\nexport TOKEN='ghp_16C7e42F292c6912E7710c838347Ae178B4a'\n-----BEGIN X PRIVATE KEY-----\nabc\n")
	f.Add("url = https://a:b@c/?d=e#f\n\"key\": \"-----BEGIN PRIVATE KEY-----\\nabcdefghijklmnopqrstuvwx\\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range File("f", []byte(text)) {
			plain := strings.ReplaceAll(text, `\n`, "\n")
			if len(v.Text) < MinLength || !strings.Contains(text, v.Text) && !strings.Contains(plain, v.Text) && !strings.Contains(text, "%") {
				t.Fatalf("%q is no part of %q", v.Text, text)
			}
		}
	})
}
