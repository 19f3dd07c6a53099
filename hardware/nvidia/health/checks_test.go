package health

import (
	"strings"
	"testing"
)

func TestChecks(t *testing.T) {
	for name, test := range map[string]struct {
		disable, enable string
		count, ignore   []uint64
		off             bool
	}{
		"built in":                      {count: []uint64{48, 63, 79, 94, 119}, ignore: []uint64{13, 31, 43, 45, 68, 109}},
		"one more is ignored":           {disable: "48", count: []uint64{79}, ignore: []uint64{48, 13}},
		"a list with spaces":            {disable: " 48, 63 ,,79", count: []uint64{94}, ignore: []uint64{48, 63, 79}},
		"all is off":                    {disable: "all", ignore: []uint64{48, 79}, off: true},
		"in capitals":                   {disable: "ALL", ignore: []uint64{79}, off: true},
		"all among others":              {disable: "48,all", ignore: []uint64{79}, off: true},
		"only XIDs are off":             {disable: "xids", ignore: []uint64{48, 79}},
		"all but one":                   {disable: "all", enable: "79", count: []uint64{79}, ignore: []uint64{48}},
		"one of the built-in list":      {enable: "31", count: []uint64{31, 48}, ignore: []uint64{13}},
		"every XID":                     {enable: "all", count: []uint64{13, 31, 79}},
		"every XID, whatever is off":    {disable: "all", enable: "xids", count: []uint64{13, 79}},
		"what is enabled wins":          {disable: "79", enable: "79", count: []uint64{79}},
		"enabling what counts already ": {enable: "79", count: []uint64{48, 79}, ignore: []uint64{13}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseChecks(test.disable, test.enable)
			if err != nil {
				t.Fatal(err)
			}
			for _, xid := range test.count {
				if !c.Counts(xid) {
					t.Errorf("XID %d is ignored", xid)
				}
			}
			for _, xid := range test.ignore {
				if c.Counts(xid) {
					t.Errorf("XID %d counts", xid)
				}
			}
			if c.Off() != test.off {
				t.Errorf("off is %v, want %v", c.Off(), test.off)
			}
		})
	}
	if c := (Checks{}); !c.Counts(79) || c.Counts(13) || c.Off() {
		t.Error("the zero value is not the built-in list")
	}
}

func TestChecksRefuseWhatTheyDoNotKnow(t *testing.T) {
	for _, list := range []string{"xid", "-1", "79;80", "0x4f"} {
		if _, err := ParseChecks(list, ""); err == nil || !strings.Contains(err.Error(), "disable") {
			t.Errorf("disabling %q gave %v", list, err)
		}
		if _, err := ParseChecks("", list); err == nil || !strings.Contains(err.Error(), "enable") {
			t.Errorf("enabling %q gave %v", list, err)
		}
	}
}
