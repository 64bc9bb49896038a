package enforce

import (
	"reflect"
	"testing"
)

// TestGateSockets: what is packed is unpacked in the same places, for every kind
// of link, and nothing else fits.
func TestGateSockets(t *testing.T) {
	for _, link := range []GateLink{Veth, Proxy} {
		for _, v6 := range []bool{false, true} {
			for _, o := range []GateOrder{{}, {Ports: []uint16{80, 443}}, {Ports: []uint16{80}, Local: []uint16{3000, 3001}}} {
				s := NoSockets()
				s.Link, s.V6 = link, v6
				n := 100
				for _, p := range s.list(len(o.Ports), len(o.Local)) {
					*p = n
					n++
				}
				fds := s.Pack()
				got, err := Unpack(&o, link, v6, fds)
				if err != nil || !reflect.DeepEqual(got, s) {
					t.Errorf("%d %v %+v: got %+v, %v, want %+v", link, v6, o, got, err, s)
				}
				seen := map[int]bool{}
				for _, fd := range fds {
					if fd < 100 || seen[fd] {
						t.Errorf("%d %v %+v: %v", link, v6, o, fds)
					}
					seen[fd] = true
				}
				for _, wrong := range [][]int{nil, fds[1:], append(fds[:len(fds):len(fds)], 1)} {
					if len(wrong) == len(fds) {
						continue
					}
					if _, err := Unpack(&o, link, v6, wrong); err == nil {
						t.Errorf("%d of %d descriptors fit", len(wrong), len(fds))
					}
				}
			}
		}
	}
	if _, err := Unpack(&GateOrder{}, NoLink, false, nil); err == nil {
		t.Error("no link is one")
	}
	const most = 64 // egress.MaxPorts
	o := GateOrder{Ports: make([]uint16, most), Local: make([]uint16, most)}
	s := NoSockets()
	s.Link, s.V6 = Veth, true
	if n := len(s.list(len(o.Ports), len(o.Local))); n > 253 {
		t.Errorf("%d descriptors do not fit into one message", n)
	}
}
