package health

import (
	"fmt"
	"strconv"
	"strings"
)

// ignoredXIDs are errors of programs, not of the GPU: a bad memory access of a
// kernel, an exception in it, a channel that was stopped and its clean-up, an
// error of the video decoder, a context switch that took too long.
var ignoredXIDs = []uint64{13, 31, 43, 45, 68, 109}

// Checks say which events count. The zero value counts every XID except those
// that programs cause.
type Checks struct {
	off     bool
	byXID   map[uint64]bool // whether it counts
	noXIDs  bool
	allXIDs bool
}

// ParseChecks reads what NVIDIA's device plugin takes from
// DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS: XIDs separated by
// commas, or "xids" for all of them, or "all". What is enabled wins over what
// is disabled, and both over the built-in list. Disabling "all" without
// enabling anything turns every check off; a GPU that can not be reached at
// all is still not offered.
func ParseChecks(disable, enable string) (Checks, error) {
	c := Checks{byXID: map[uint64]bool{}}
	disabled, all, err := parseXIDs(disable)
	if err != nil {
		return Checks{}, fmt.Errorf("health checks to disable: %w", err)
	}
	c.noXIDs = all != ""
	for _, xid := range disabled {
		c.byXID[xid] = false
	}
	enabled, allEnabled, err := parseXIDs(enable)
	if err != nil {
		return Checks{}, fmt.Errorf("health checks to enable: %w", err)
	}
	c.allXIDs = allEnabled != ""
	for _, xid := range enabled {
		c.byXID[xid] = true
	}
	c.off = all == "all" && !c.allXIDs && len(enabled) == 0
	return c, nil
}

// parseXIDs returns the XIDs of a list, and the word that stands for all.
func parseXIDs(list string) (xids []uint64, all string, err error) {
	for word := range strings.SplitSeq(strings.ToLower(list), ",") {
		switch word = strings.TrimSpace(word); word {
		case "":
		case "all":
			all = word
		case "xids":
			if all == "" {
				all = word
			}
		default:
			xid, err := strconv.ParseUint(word, 10, 64)
			if err != nil {
				return nil, "", fmt.Errorf(`%q is neither the number of an XID nor "xids" nor "all"`, word)
			}
			xids = append(xids, xid)
		}
	}
	return xids, all, nil
}

// Off reports whether nothing is to be checked.
func (c Checks) Off() bool { return c.off }

// Counts reports whether an XID speaks against a GPU.
func (c Checks) Counts(xid uint64) bool {
	if c.allXIDs {
		return true
	}
	if counts, named := c.byXID[xid]; named {
		return counts
	}
	if c.noXIDs {
		return false
	}
	for _, ignored := range ignoredXIDs {
		if xid == ignored {
			return false
		}
	}
	return true
}
