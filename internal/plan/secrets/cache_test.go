package secrets

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCacheKeepsNothingYoung(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		age  time.Duration
		want bool
	}{{-time.Hour, false}, {0, false}, {settled - 1, false}, {settled, true}, {time.Hour, true}} {
		cache := newCache("")
		cache.put(cacheKey{ctime: now.Add(-c.age).UnixNano()}, public, now)
		if got := len(cache.used) == 1; got != c.want {
			t.Errorf("age %v: got kept %v, want %v", c.age, got, c.want)
		}
	}
}

func TestCacheForgetsWhatNobodyAsksFor(t *testing.T) {
	c := newCache("")
	c.old = map[cacheKey]verdict{}
	for i := range 2000 {
		c.old[cacheKey{size: int64(i)}] = public
	}
	if c.get(cacheKey{size: 1}); !c.stale() {
		t.Error("got not worth writing, want so: nearly all of it is out of use")
	}
	if got := len(decodeCache(c.encode())); got != 1 {
		t.Errorf("got %d verdicts, want 1", got)
	}
	var none *Cache
	none.put(cacheKey{}, public, time.Now())
	if _, ok := none.get(cacheKey{}); ok {
		t.Error("got a verdict from no cache")
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache("")
	for i := range cacheEntries + 10 {
		c.put(cacheKey{size: int64(i)}, secret, time.Now())
	}
	b := c.encode()
	if int64(len(b)) != cacheMax || len(decodeCache(b)) != cacheEntries {
		t.Errorf("got %d bytes, want %d", len(b), cacheMax)
	}
}

func TestCacheRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCache("")
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			k := cacheKey{identity{rapid.Uint64().Draw(t, "dev"), rapid.Uint64().Draw(t, "ino")}, rapid.Int64().Draw(t, "ctime"), rapid.Int64().Draw(t, "size")}
			c.used[k] = rapid.SampledFrom([]verdict{secret, gitRef, public}).Draw(t, "verdict")
		}
		b := c.encode()
		if got := decodeCache(b); !maps.Equal(got, c.used) {
			t.Fatalf("got %v, want %v", got, c.used)
		}
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		b[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if got := decodeCache(b); got != nil {
			t.Fatalf("byte %d changed: got %v, want nothing", at, got)
		}
		if got := decodeCache(b[:at]); got != nil {
			t.Fatalf("cut at %d: got %v, want nothing", at, got)
		}
	})
}

func FuzzDecodeCache(f *testing.F) {
	c := newCache("")
	f.Add(c.encode())
	c.used[cacheKey{}] = public
	f.Add(c.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newCache("")
		if c.used = decodeCache(b); c.used != nil && len(c.encode()) > len(b) {
			t.Fatalf("got more than was stored: %v", c.used)
		}
	})
}
