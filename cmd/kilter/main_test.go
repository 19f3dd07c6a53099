package main

import (
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/cli"
)

// What the command line says reaches the driver, which refuses what it does
// not know.
func TestOptionsReachTheDriver(t *testing.T) {
	for want, options := range map[string]cli.DriverOptions{
		`MIG strategy "double"`:    {MIGStrategy: "double"},
		"health checks to disable": {DisableHealthChecks: "many"},
		"health checks to enable":  {EnableHealthChecks: "many"},
	} {
		if _, err := drivers.Real["nvidia"](options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", options, err)
		}
	}
	if _, err := drivers.Real["nvidia"](cli.DriverOptions{
		MIGStrategy: "mixed", DriverRoot: "/run/nvidia/driver", DevRoot: "/run/nvidia/driver", DisableHealthChecks: "all", EnableHealthChecks: "79",
	}); err != nil {
		t.Error(err)
	}
}
