package fact_test

import (
	"testing"

	"github.com/tether-sandbox/tether/fact"
)

func TestOpen(t *testing.T) {
	facts := []fact.Fact{
		{Kind: fact.Intent, ID: "1"}, {Kind: fact.Intent, ID: "2"}, {Kind: fact.Outcome, ID: "1"}, {Kind: fact.Denial, ID: "2"},
	}
	open := fact.Open(facts)
	if len(open) != 1 || open[0].ID != "2" {
		t.Errorf("got %v, want the intent 2 alone", open)
	}
	if got := fact.Open(nil); len(got) != 0 {
		t.Errorf("got %v of no facts", got)
	}
}
