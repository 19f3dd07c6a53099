package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/machines"
)

// FuzzRead reads files and a variable. What is accepted must give every node a
// sound plan, or say which line is at fault; what is refused says where.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "version: v1", "flags: {migStrategy: mixed, plugin: {deviceListStrategy: [envvar, cdi-cri]}}",
		"resources: {gpus: [{pattern: \"*\", name: a}], mig: [{pattern: 1g*, name: example.com/b}]}\nimex: {channelIDs: [0]}",
		inSection("timeSlicing", "    - {name: gpu, devices: 2, replicas: 3, rename: a}\n    - {name: gpu, devices: [3, GPU-0], replicas: 1}\n    renameByDefault: true"),
		inSection("timeSlicing", "    - {name: gpu, devices: [GPU-0, 1], replicas: 2, rename: a}\n    - {name: mig-1g.10gb, devices: [2:0], replicas: 4}\n  mps:\n    resources:\n    - {name: gpu, devices: [0], replicas: 4}"),
		inSection("mps", "    - name: gpu\n      devices: [0]\n      shares: [{percent: 50, rename: half}, {percent: 10, replicas: 3, rename: tenth}]"),
		inSection("mps", "    - {name: gpu, replicas: 7, devices: all}\n    failRequestsGreaterThanOne: false"),
	} {
		f.Add(seed, "mixed")
	}
	nodes := [][]device.Device{nil, gpus(1), gpus(4), mixed(), slicesOf(0, 3, "gpu", "1g.10gb")}
	for _, name := range machines.Names() {
		machine, err := machines.Load(name)
		if err != nil {
			f.Fatal(err)
		}
		nodes = append(nodes, machine.On("node"))
	}
	mistake := regexp.MustCompile(`^(config\.yaml:[1-9][0-9]*|environment variable [A-Z_]+): .`)
	f.Fuzz(func(t *testing.T, file, variable string) {
		c, _, err := Read(Sources{
			File: &File{Name: "config.yaml", Data: []byte(file)},
			Env: func(name string) (string, bool) {
				return variable, name == "MIG_STRATEGY" || name == "DEVICE_LIST_STRATEGY"
			},
		})
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !mistake.MatchString(line) {
					t.Fatalf("the mistake %q has no place", line)
				}
			}
			return
		}
		for _, devices := range nodes {
			plan, err := c.Plan(devices)
			var absent *AbsentError
			if err != nil && !strings.HasPrefix(err.Error(), "config.yaml:") {
				t.Errorf("the mistake %q has no place", err)
			}
			if err == nil || errors.As(err, &absent) && len(plan.Offers) > 0 {
				if err := sound(plan, devices); err != nil {
					t.Errorf("%v, in the plan\n%s", err, show(plan))
				}
			}
		}
	})
}

// sound is what the doors rely on: every device is offered, and none twice.
func sound(plan Plan, devices []device.Device) error {
	memory := map[device.ID]int64{}
	for _, d := range devices {
		memory[d.ID] = d.Capacity.MemoryBytes
	}
	ids := map[string]bool{}
	strategy := map[device.ID]Strategy{}
	resource := map[device.ID]string{}
	percent := map[device.ID]int{}
	used := map[device.ID]int64{}
	sorts := map[string]Strategy{}
	for _, o := range plan.Offers {
		if _, known := memory[o.Device]; !known {
			return fmt.Errorf("%s is no device of the node", o.Device)
		}
		if _, _, err := kube.ParseResourceName(o.Resource); err != nil {
			return err
		}
		if s, twice := strategy[o.Device]; twice && (s != MPS || o.Strategy != MPS || resource[o.Device] == o.Resource) {
			return fmt.Errorf("%s is offered twice", o.Device)
		}
		if s, seen := sorts[o.Resource]; seen && s != o.Strategy {
			return fmt.Errorf("%s is of two sorts", o.Resource)
		}
		strategy[o.Device], resource[o.Device], sorts[o.Resource] = o.Strategy, o.Resource, o.Strategy
		if len(o.IDs()) != o.Replicas || o.Replicas < 1 || o.Replicas > maxReplicas {
			return fmt.Errorf("%s has %d replicas and %d ids", o.Device, o.Replicas, len(o.IDs()))
		}
		for _, id := range o.IDs() {
			of, _, isReplica := SplitID(id)
			if ids[id] || of != o.Device || isReplica != (o.Strategy != Whole) {
				return fmt.Errorf("%s is a bad id", id)
			}
			ids[id] = true
		}
		if (o.Share != Share{}) != (o.Strategy == MPS) {
			return fmt.Errorf("%s has the strategy %s and the share %+v", o.Device, o.Strategy, o.Share)
		}
		percent[o.Device] += o.Replicas * o.Share.ComputePercent
		used[o.Device] += int64(o.Replicas) * o.Share.MemoryBytes
	}
	for id, total := range memory {
		if strategy[id] == "" {
			return fmt.Errorf("%s is not offered", id)
		}
		if percent[id] > 100 || used[id] > total {
			return fmt.Errorf("%s is given %d%% and %d of %d bytes", id, percent[id], used[id], total)
		}
	}
	return nil
}
