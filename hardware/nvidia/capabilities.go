package nvidia

import (
	"bytes"
	"fmt"
	"io/fs"
	"strconv"
)

// migMinors is where the kernel's half of the driver lists the nodes that
// guard MIG instances.
const migMinors = "proc/driver/nvidia-caps/mig-minors"

// capabilityNodes returns the names under /dev of the nodes that a container
// has to be able to open for the use of MIG instances: one for the GPU
// instance and one for the compute instance of each.
func capabilityNodes(host fs.FS, gpuMinor int, instances []instance) ([]string, error) {
	if len(instances) == 0 {
		return nil, nil
	}
	text, err := fs.ReadFile(host, migMinors)
	if err != nil {
		return nil, fmt.Errorf("find the nodes of MIG instances: %w", err)
	}
	minors, err := parseMIGMinors(text)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, i := range instances {
		for _, capability := range []string{
			fmt.Sprintf("gpu%d/gi%d/access", gpuMinor, i.gpu),
			fmt.Sprintf("gpu%d/gi%d/ci%d/access", gpuMinor, i.gpu, i.compute),
		} {
			minor, ok := minors[capability]
			if !ok {
				return nil, fmt.Errorf("find the node of a MIG instance: /%s does not list %s", migMinors, capability)
			}
			names = append(names, fmt.Sprintf("nvidia-caps/nvidia-cap%d", minor))
		}
	}
	return names, nil
}

// parseMIGMinors reads lines such as "gpu0/gi1/ci0/access 13".
func parseMIGMinors(text []byte) (map[string]int, error) {
	minors := map[string]int{}
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("read /%s: %q is not a capability and a number", migMinors, bytes.TrimSpace(line))
		}
		minor, err := strconv.ParseUint(string(words[1]), 10, 31)
		if err != nil {
			return nil, fmt.Errorf("read /%s: %w", migMinors, err)
		}
		minors[string(words[0])] = int(minor)
	}
	return minors, nil
}
