package device

import "time"

// Health says whether a device can be given to somebody new, and if not, why.
type Health struct {
	State HealthState `json:"state"`
	// Reason is a sentence for people; empty while the device is healthy.
	Reason string `json:"reason,omitempty"`
	// Since is when the state was entered, as far as the driver knows.
	Since time.Time `json:"since,omitzero"`
}

// HealthState is where a device stands.
type HealthState string

const (
	// Healthy devices are offered.
	Healthy HealthState = "Healthy"
	// Suspect devices have shown a sign of trouble that is not settled yet.
	Suspect HealthState = "Suspect"
	// Unhealthy devices are not offered; a Pod that holds one keeps it.
	Unhealthy HealthState = "Unhealthy"
	// Recovering devices were unhealthy, look well, and are still on trial.
	Recovering HealthState = "Recovering"
)

// OK reports whether the device may be offered. Only a healthy one may: what
// is suspect or on trial goes back to Healthy by itself or not at all, and
// nobody new should be the one who finds out.
func (h Health) OK() bool { return h.State == Healthy }
