package machines

import (
	"fmt"
	"math/big"
	"regexp"
)

var quantityForm = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z/]+)$`)

var memoryUnits = map[string]int64{"MiB": 1 << 20, "GiB": 1 << 30}

// In 10^6 bytes a second, the unit of device.Link.
var rateUnits = map[string]int64{"MB/s": 1, "GB/s": 1000}

// The limits are far above any hardware; they keep sums within an int64.
const (
	maxMemoryBytes = 1 << 50 // 1 PiB
	maxLaneMBps    = 1_000_000_000
	maxLanes       = 1024
	maxCount       = 1 << 20
)

// quantity reads a number with a unit as an exact multiple of the unit of
// measure.
func quantity(text string, units map[string]int64) (*big.Rat, bool) {
	parts := quantityForm.FindStringSubmatch(text)
	if parts == nil {
		return nil, false
	}
	unit, known := units[parts[2]]
	if !known {
		return nil, false
	}
	number, ok := new(big.Rat).SetString(parts[1])
	if !ok {
		return nil, false
	}
	return number.Mul(number, new(big.Rat).SetInt64(unit)), true
}

// memory reads an amount such as 80GiB or 81559MiB into bytes.
func memory(text string) (int64, error) {
	amount, ok := quantity(text, memoryUnits)
	if !ok || !amount.IsInt() || amount.Sign() <= 0 || amount.Cmp(big.NewRat(maxMemoryBytes, 1)) > 0 {
		return 0, fmt.Errorf("%q is not an amount of memory such as 80GiB or 81559MiB", text)
	}
	return amount.Num().Int64(), nil
}

// rate is a speed in MB/s. It is a fraction, since a lane of some links does
// not carry a whole number of them.
type rate struct{ mbps *big.Rat }

func parseRate(text string) (rate, error) {
	amount, ok := quantity(text, rateUnits)
	if !ok || amount.Sign() <= 0 || amount.Cmp(big.NewRat(maxLaneMBps, 1)) > 0 {
		return rate{}, fmt.Errorf("%q is not a speed such as 25GB/s or 14062.5MB/s", text)
	}
	return rate{amount}, nil
}

// over returns the speed of several lanes, in whole MB/s.
func (r rate) over(lanes int) int64 {
	total := new(big.Rat).Mul(r.mbps, big.NewRat(int64(lanes), 1))
	return new(big.Int).Quo(total.Num(), total.Denom()).Int64()
}
