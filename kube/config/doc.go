// Package config reads the agent's configuration: NVIDIA's device plugin's own
// file, environment variables and flags, as they are, so that who comes from
// there changes nothing. docs/from-nvidia-device-plugin.md lists them all.
//
// # Reading
//
// A flag wins over an environment variable, and that over the file. The file
// is read strictly: an unknown key, a wrong type or a value that makes no
// sense is refused with its line, all mistakes of a file together. One table,
// Settings, says what can be set, where, and what Kilter does with it; what it
// does not act on gives a warning when it is set, and is never passed over in
// silence.
//
// # Planning
//
// Config.Plan decides what the devices of a node are offered as. Each device
// has one name: the vendor's and kind's, or the first of the patterns under
// resources that matches its model or profile. Each entry under sharing is a
// rule for devices of one name: all of them, the first few, or those listed.
// A device belongs to one rule at most; one that belongs to none is offered
// whole. A rule cuts its devices into replicas that are offered under the same
// name, with ".shared" behind it, or under a name of its own:
//
//   - by time-slicing, which limits nothing;
//   - by MPS, into equal shares, or into the shares that the rule lists, each
//     with a name of its own so that a Pod can ask for the size it needs.
//
// What is offered under one name must be of one sort, because who asks for it
// can not know which they get: all whole, all time-sliced, or all MPS shares of
// one size.
package config
