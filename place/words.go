package place

import (
	"fmt"
	"strconv"
)

// The words of explanations.

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}

func areDevices(n int) string {
	if n == 1 {
		return "1 device is"
	}
	return fmt.Sprintf("%d devices are", n)
}

func haveDevices(n int) string {
	if n == 1 {
		return "1 device has"
	}
	return fmt.Sprintf("%d devices have", n)
}

func amount(a Amount) string {
	switch {
	case a == Amount{}:
		return "all of it"
	case a.MemoryBytes == 0:
		return percent(a.ComputeMilli) + " of compute"
	case a.ComputeMilli == 0:
		return bytes(a.MemoryBytes)
	}
	return bytes(a.MemoryBytes) + " and " + percent(a.ComputeMilli) + " of compute"
}

// percent writes thousandths as percent, without needless digits.
func percent(milli int64) string { return decimal(milli, 10) + " %" }

// cores writes thousandths of a core.
func cores(milli int64) string { return decimal(milli, 1000) }

// bytes writes an amount of memory in the largest unit that keeps it exact to
// a tenth.
func bytes(n int64) string {
	units := []string{"B", "Ki", "Mi", "Gi", "Ti"}
	value, unit := float64(n), 0
	for unit < len(units)-1 && (value >= 1024 || value <= -1024) {
		value /= 1024
		unit++
	}
	return strconv.FormatFloat(float64(int64(value*10))/10, 'f', -1, 64) + units[unit]
}

func decimal(n int64, unit float64) string {
	return strconv.FormatFloat(float64(n)/unit, 'f', -1, 64)
}
