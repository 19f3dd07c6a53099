// Package health decides how well a GPU is, from what was seen of it. It is
// pure: it asks nothing and has no clock.
//
//	            a doubt                 it lasts, or a fault
//	Healthy ──────────────▶ Suspect ─────────────────────────▶ Unhealthy
//	   ▲  ▲                   │                                 │    ▲
//	   │  └── settled ────────┘                 no recovery due │    │ anything
//	   │                                     and a probe passed ▼    │
//	   └───────────── trial passed ─────────────────────── Recovering
//
// A fault (the GPU is lost, NVML says that it must be reset) makes a GPU
// unhealthy at once, from any state. A doubt (no answer, a fabric that is not
// up) makes it suspect, and unhealthy when it lasts.
//
// Something that happened, such as an XID error, leaves nothing behind that
// could be looked at again. NVML's recovery action is then the judge: where it
// says that nothing is due, the GPU is suspect and returns when nothing more
// comes of it. Where the driver has no such judgement, the GPU is unhealthy
// until that driver is loaded anew.
//
// Every return takes a time of quiet, and that time doubles with each relapse,
// so that a GPU which fails again and again spends its time out of service
// and not in flapping. It is single again after an hour without trouble.
package health
