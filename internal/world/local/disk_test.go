package local

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestFloorOf(t *testing.T) {
	const m, g = 1 << 20, 1 << 30
	for _, c := range []struct {
		name  string
		asked int64
		begin room
		want  floor
	}{
		{"a large disk", 0, room{free: 50 * g, size: 100 * g, names: 900, mostNames: 1000}, floor{g, 10}},
		{"a small one", 0, room{free: 5 * g, size: 10 * g}, floor{g / 2, 0}},
		{"at the edge", 0, room{free: g, size: 100 * g}, floor{g, 0}},
		{"fuller from the beginning", 0, room{free: g - 2, size: 100 * g}, floor{g/2 - 1, 0}},
		{"full", 0, room{size: 100 * g}, floor{}},
		{"few files from the beginning", 0, room{free: 50 * g, size: 100 * g, names: 8, mostNames: 1000}, floor{g, 4}},
		{"asked", 10 * g, room{free: 50 * g, size: 100 * g, names: 900, mostNames: 1000}, floor{10 * g, 100}},
		{"asked for less", m, room{free: 50 * g, size: 100 * g, names: 900, mostNames: 1000}, floor{m, 0}},
		{"asked for more than there is", 500 * g, room{free: 50 * g, size: 100 * g, names: 900, mostNames: 1000}, floor{25 * g, 450}},
		{"no file system", 0, room{}, floor{}},
	} {
		if got := floorOf(c.asked, c.begin); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestFloorLaws: nothing is refused that does not get worse, what shrinks to
// nothing is, and the time to wait is bounded.
func TestFloorLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(1<<20, 1<<50).Draw(t, "size")
		most := rapid.Uint64Range(0, 1<<40).Draw(t, "most names")
		begin := room{free: rapid.Uint64Range(2, size).Draw(t, "free"), size: size, names: rapid.Uint64Range(0, most).Draw(t, "names"), mostNames: most}
		asked := rapid.Int64Range(0, 1<<52).Draw(t, "asked")
		f := floorOf(asked, begin)
		if begin.below(f) {
			t.Fatalf("%+v is below %+v from the beginning", begin, f)
		}
		if f.bytes > 0 && !(room{size: size}).below(f) {
			t.Fatalf("a full disk is not below %+v", f)
		}
		if wait := begin.pause(f); wait < 50*time.Millisecond || wait > time.Second {
			t.Fatalf("%+v above %+v: wait %v", begin, f, wait)
		}
	})
}

func TestPause(t *testing.T) {
	const g = 1 << 30
	f := floor{bytes: g, names: 1 << 20}
	for _, c := range []struct {
		r    room
		want time.Duration
	}{
		{room{free: 100 * g}, time.Second}, {room{free: 3 * g}, 500 * time.Millisecond}, {room{free: g}, 50 * time.Millisecond},
		{room{}, 50 * time.Millisecond}, {room{free: 100 * g, names: 3 << 19, mostNames: 9 << 20}, 500 * time.Millisecond},
	} {
		if got := c.r.pause(f); got != c.want {
			t.Errorf("%+v: got %v, want %v", c.r, got, c.want)
		}
	}
}
