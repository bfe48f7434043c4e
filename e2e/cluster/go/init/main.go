// The first process of a process namespace, of the node and of each pod (the "pause" container): it waits, and reaps
// what the others leave. When it dies the kernel ends everything else in its namespace, which is how the stage is cleared.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGINT)
	for {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err == syscall.EINTR {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
		}
		if received := <-signals; received != syscall.SIGCHLD {
			os.Exit(0)
		}
	}
}
