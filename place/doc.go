// Package place chooses devices. It is pure: it knows no Kubernetes, no file,
// no clock and no vendor, and the same input always gives the same answer.
//
// Prefer chooses among the devices of one node. Cluster chooses over many
// nodes: it is told of nodes (SetNode), of what is held on them (Hold), and of
// what is asked (Learn); it answers a Request with Offers, and an Offer that
// is taken is a Commit, which fails if the node has changed since. Explain
// says what is missing where.
//
// # How a node and its devices are chosen
//
// A request fits on a node when CPU, memory and a Pod slot are free and every
// group finds its devices: matching, healthy, with the amount free, and linked
// where that is required. Of the ways to serve it, the better one has, by the
// first that differs: more bandwidth where links are wished for, a better rank
// where one is given, a smaller loss of worth for the cluster, less left over
// on its node, and the first name. There is no tie that luck decides.
//
// The worth of a cluster is what its free room can still do for requests like
// those of late; package internal/mix has the formula. It is a sum over nodes,
// and nodes in the same state share one evaluation, so that a decision looks
// at what has changed since the last one, not at the cluster.
package place
