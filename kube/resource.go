package kube

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kilter-dev/kilter/device"
)

// ResourceName is the name under which users ask for devices like d, such as
// "nvidia.com/gpu". It is an error if Kubernetes would not take the name for
// an extended resource: the kubelet would refuse it with less to go by.
func ResourceName(d device.Device) (string, error) {
	name := d.Vendor + "/" + d.Kind
	if err := checkResourceName(d.Vendor, d.Kind); err != nil {
		return "", fmt.Errorf("device %s can not be asked for as %q: %w", d.ID, name, err)
	}
	return name, nil
}

// ParseResourceName is the way back from a resource name to the vendor and
// kind of the devices behind it.
func ParseResourceName(name string) (vendor, kind string, err error) {
	vendor, kind, found := strings.Cut(name, "/")
	if !found {
		return "", "", fmt.Errorf("resource name %q: want vendor/kind, as in nvidia.com/gpu", name)
	}
	if err := checkResourceName(vendor, kind); err != nil {
		return "", "", fmt.Errorf("resource name %q: %w", name, err)
	}
	return vendor, kind, nil
}

// checkResourceName holds a name to the rules for extended resources, which
// are stricter than those for labels: Kubernetes keeps its own domain to
// itself, and quotas put "requests." in front of the name.
func checkResourceName(vendor, kind string) error {
	if problems := validation.IsDNS1123Subdomain(vendor); len(problems) > 0 {
		return fmt.Errorf("the vendor %q is no domain name: %s", vendor, strings.Join(problems, "; "))
	}
	if vendor == "kubernetes.io" || strings.HasSuffix(vendor, ".kubernetes.io") {
		return fmt.Errorf("the domain %s is Kubernetes' own", vendor)
	}
	if strings.HasPrefix(vendor, "requests.") {
		return fmt.Errorf(`the vendor %q starts with "requests.", which quotas use`, vendor)
	}
	if strings.Contains(kind, "/") {
		return fmt.Errorf("the kind %q contains a slash", kind)
	}
	if problems := validation.IsQualifiedName("requests." + vendor + "/" + kind); len(problems) > 0 {
		return fmt.Errorf("%s", strings.Join(problems, "; "))
	}
	return nil
}
