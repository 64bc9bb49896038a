package machine

import "testing"

func TestDistribution(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"ID=debian\n", "debian"}, {"NAME=x\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "ubuntu"},
		{"ID_LIKE='rhel centos fedora'\nID=\"rocky\"\n", "rhel"}, {"ID=unheard\n", "unheard"}, {"garbage\n=\nID\n", ""},
	} {
		if got := distribution(c.text); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
