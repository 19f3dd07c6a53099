package cli

import "testing"

// A slash in a name is written ~1 in the path of a JSON patch, a tilde ~0.
func TestCapacityPatch(t *testing.T) {
	three := uint64(3)
	for _, test := range []struct {
		fields []string
		name   string
		count  *uint64
		want   string
	}{
		{[]string{"capacity", "allocatable"}, "example.com/dongle", &three,
			`[{"op":"add","path":"/status/capacity/example.com~1dongle","value":"3"},{"op":"add","path":"/status/allocatable/example.com~1dongle","value":"3"}]`},
		{[]string{"capacity"}, "example.com/dongle", nil, `[{"op":"remove","path":"/status/capacity/example.com~1dongle"}]`},
		{[]string{"capacity"}, "a~b/c", nil, `[{"op":"remove","path":"/status/capacity/a~0b~1c"}]`},
	} {
		got, err := capacityPatch(test.fields, test.name, test.count)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s (%v), want %s", test.name, got, err, test.want)
		}
	}
}
