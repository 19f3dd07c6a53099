package health

// Look is what one look at a GPU showed.
type Look struct {
	// Signs are what speaks against the GPU at this moment.
	Signs []Sign

	// Happened are the events since the last look, as sentences.
	Happened []string

	// Recovery is what NVML wants done about the GPU.
	Recovery Recovery

	// Probed says that the GPU was tried and did well.
	Probed bool

	// Fresh says that the driver was loaded anew since the last look, so that
	// what happened before does not count any more.
	Fresh bool
}

// Sign is one thing that speaks against a GPU.
type Sign struct {
	Weight Weight
	Reason string
}

// Weight is how much a sign means.
type Weight int

const (
	// Doubt may pass by itself.
	Doubt Weight = iota
	// Fault means that the GPU can not be used.
	Fault
)

// Recovery is NVML's judgement of what a GPU needs. The zero value is no
// judgement, as from a driver that does not give one.
type Recovery struct {
	Known bool
	// Due says what has to be done; empty when nothing has.
	Due string
}

// NoneDue is the judgement that a GPU needs nothing.
var NoneDue = Recovery{Known: true}

// standing sorts what a look brought into what is a fault and what a doubt.
func (l Look) standing() (faults, doubts []string) {
	if l.Recovery.Due != "" {
		faults = append(faults, "NVML says that it needs "+l.Recovery.Due)
	}
	for _, s := range l.Signs {
		if s.Weight == Fault {
			faults = append(faults, s.Reason)
		} else {
			doubts = append(doubts, s.Reason)
		}
	}
	return faults, doubts
}
