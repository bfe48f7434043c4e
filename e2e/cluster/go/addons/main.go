// The add-ons of the stage, chosen by the name that this program is called by: coredns (with the few plugins that cluster
// DNS needs) and network-policy (kube-router's firewall alone). Their full programs link every cloud's client library and a
// BGP daemon, which takes minutes to compile and is used by nobody here.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "coredns":
		serveNames()
	case "network-policy":
		if err := enforcePolicies(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "network-policy:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintf(os.Stderr, "%s: call this program coredns or network-policy\n", name)
		os.Exit(2)
	}
}
