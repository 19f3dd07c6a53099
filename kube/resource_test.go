package kube

import (
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
)

func TestResourceName(t *testing.T) {
	tests := []struct {
		vendor, kind string
		fails        string
	}{
		{"nvidia.com", "gpu", ""},
		{"nvidia.com", "gpu.shared", ""},
		{"nvidia.com", "mig-1g.10gb", ""},
		{"a.example.org", "x_y", ""},
		{"", "gpu", "no domain name"},
		{"nvidia.com", "", "name part"},
		{"Nvidia.com", "gpu", "no domain name"},
		{"nvidia.com", "g pu", "name part"},
		{"nvidia.com", "gpu/half", "slash"},
		{"kubernetes.io", "gpu", "Kubernetes' own"},
		{"x.kubernetes.io", "gpu", "Kubernetes' own"},
		{"requests.nvidia.com", "gpu", "quotas"},
		{"nvidia.com", strings.Repeat("k", 64), "63"},
		{strings.Repeat("a.", 122) + "example", "gpu", "253"},
	}
	for _, test := range tests {
		name, err := ResourceName(device.Device{ID: "d0", Vendor: test.vendor, Kind: test.kind})
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) || !strings.Contains(err.Error(), "d0") {
				t.Errorf("%s/%s: %q, %v; want an error with %q", test.vendor, test.kind, name, err, test.fails)
			}
			if _, _, err := ParseResourceName(test.vendor + "/" + test.kind); err == nil {
				t.Errorf("%s/%s can be read although it can not be made", test.vendor, test.kind)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s/%s: %v", test.vendor, test.kind, err)
			continue
		}
		vendor, kind, err := ParseResourceName(name)
		if err != nil || vendor != test.vendor || kind != test.kind {
			t.Errorf("%s read back: %s, %s, %v", name, vendor, kind, err)
		}
	}
	if _, _, err := ParseResourceName("gpu"); err == nil || !strings.Contains(err.Error(), "nvidia.com/gpu") {
		t.Errorf("a name without a slash: %v; want an error with an example", err)
	}
}
