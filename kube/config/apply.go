package config

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The functions here make those that check a value and put it into the
// configuration. They return errors that go on after the setting's name.

func textOf(field func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, value []string) error {
		*field(c) = value[0]
		return nil
	}
}

func listOf(field func(*Config) *[]string) func(*Config, []string) error {
	return func(c *Config, value []string) error {
		*field(c) = value
		return nil
	}
}

func boolOf(field func(*Config) *bool) func(*Config, []string) error {
	return func(c *Config, value []string) error {
		*field(c) = value[0] == "true"
		return nil
	}
}

func pathOf(field func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, value []string) error {
		*field(c) = value[0]
		return checkPath(c, value)
	}
}

func choiceOf[T ~string](field func(*Config) *T, known ...T) func(*Config, []string) error {
	return func(c *Config, value []string) error {
		*field(c) = T(value[0])
		return oneOf(known, value[0])
	}
}

// checkOneOf only checks: nothing depends on the choice.
func checkOneOf(known ...string) func(*Config, []string) error {
	return func(_ *Config, value []string) error { return oneOf(known, value[0]) }
}

func oneOf[T ~string](known []T, value string) error {
	if slices.Contains(known, T(value)) {
		return nil
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	if len(names) == 1 {
		return fmt.Errorf("%q is not known; it is %s", value, names[0])
	}
	return fmt.Errorf("%q is not known; it is one of %s", value, strings.Join(names, ", "))
}

// anything only takes note: nothing depends on the value.
func anything(*Config, []string) error { return nil }

func checkPath(_ *Config, value []string) error {
	if !path.IsAbs(value[0]) {
		return fmt.Errorf("%q is not an absolute path", value[0])
	}
	return nil
}

func checkDuration(_ *Config, value []string) error {
	if d, err := time.ParseDuration(value[0]); err != nil || d < 0 {
		return fmt.Errorf("%q is not a time such as 60s", value[0])
	}
	return nil
}

func deviceLists(c *Config, value []string) error {
	if len(value) == 0 {
		return errors.New("the list is empty")
	}
	c.DeviceLists = nil
	for _, v := range value {
		if err := oneOf([]DeviceList{EnvVar, VolumeMounts, CDIAnnotations, CDICRI}, v); err != nil {
			return err
		}
		if !slices.Contains(c.DeviceLists, DeviceList(v)) {
			c.DeviceLists = append(c.DeviceLists, DeviceList(v))
		}
	}
	return nil
}

// imexChannels takes what the driver has: none, or channel 0.
func imexChannels(c *Config, value []string) error {
	c.IMEXChannels = nil
	for _, v := range value {
		if number, err := strconv.Atoi(v); err != nil || number != 0 || len(value) > 1 {
			return errors.New("it is [] or [0]")
		}
		c.IMEXChannels = []int{0}
	}
	return nil
}

var xidForm = regexp.MustCompile(`^(?i:[0-9]{1,18}|xids|all)$`)

func xidsOf(field func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, value []string) error {
		*field(c) = value[0]
		for item := range strings.SplitSeq(value[0], ",") {
			if item = strings.TrimSpace(item); item != "" && !xidForm.MatchString(item) {
				return fmt.Errorf(`%q is neither the number of an XID nor "xids" nor "all"`, item)
			}
		}
		return nil
	}
}
