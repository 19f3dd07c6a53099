package device

import (
	"encoding/json"
	"fmt"
)

// Attribute is a fact about a device that people select on. It is one of
// String, Int, Bool and Version.
type Attribute interface {
	fmt.Stringer
	isAttribute()
}

type (
	// String is an attribute such as the architecture "Hopper".
	String string
	// Int is an attribute such as a count.
	Int int64
	// Bool is an attribute that holds or does not.
	Bool bool
	// Version is a version that compares by its parts: "9.0", "570.86.15".
	Version string
)

func (String) isAttribute()  {}
func (Int) isAttribute()     {}
func (Bool) isAttribute()    {}
func (Version) isAttribute() {}

func (s String) String() string  { return string(s) }
func (i Int) String() string     { return fmt.Sprint(int64(i)) }
func (b Bool) String() string    { return fmt.Sprint(bool(b)) }
func (v Version) String() string { return string(v) }

// The attributes that more than one room knows by name.
const (
	AttributeArchitecture      = "architecture"
	AttributeComputeCapability = "computeCapability"
	AttributeDriverVersion     = "driverVersion"
	AttributeCUDAVersion       = "cudaVersion"

	// What a device that was cut from another one has beside: the uuid of the
	// whole, its profile, such as 1g.10gb, and its number there.
	AttributeParentUUID = "parentUUID"
	AttributeProfile    = "profile"
	AttributeMIGIndex   = "migIndex"
)

// MarshalJSON writes the version as a plain string; the type is known from
// the attribute's name.
func (v Version) MarshalJSON() ([]byte, error) { return json.Marshal(string(v)) }
