// Probe is the program in the Pods of the end-to-end tests. It says what its
// container sees of devices, from inside: which nodes there are, which of them
// the kernel lets it open, which it can open after making the node itself.
//
//	probe                    say it and exit
//	probe -for 2s            say it, stay that long, say when that was
//	probe -until-told        stay until a signal comes
//	probe -listen 8080       also answer "hello" on the port
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kilter-dev/kilter/test/sight"
)

func main() {
	stay := flag.Duration("for", 0, "how long to stay")
	untilTold := flag.Bool("until-told", false, "stay until a signal comes")
	listen := flag.Int("listen", 0, "port to answer on")
	major := flag.Uint("major", sight.Major, "major number of self-made nodes; 195 is NVIDIA's")
	flag.Parse()

	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, os.Interrupt)
	seen := look(uint32(*major))
	if *listen != 0 {
		answer(*listen)
	}
	if *untilTold {
		print(seen)
		<-told
	} else if *stay > 0 {
		select {
		case <-time.After(*stay):
		case <-told:
		}
	}
	seen.EndNanos = now()
	print(seen)
}

func print(seen sight.Sight) {
	line, err := json.Marshal(seen)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// now is a clock that all containers of the machine share.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

func look(major uint32) sight.Sight {
	seen := sight.Sight{BeginNanos: now(), Visible: os.Getenv("NVIDIA_VISIBLE_DEVICES"), Open: map[string]string{}, SelfMade: map[int]string{}}
	nodes, _ := filepath.Glob("/dev/nvidia*")
	for _, node := range nodes {
		seen.Nodes = append(seen.Nodes, node)
		seen.Open[node] = open(node)
	}
	for minor := range sight.Minors {
		seen.SelfMade[minor] = makeAndOpen(major, minor)
	}
	entries, err := os.ReadDir(sight.DriverFolder)
	if err == nil {
		for _, entry := range entries {
			seen.DriverFolder = append(seen.DriverFolder, entry.Name())
		}
		seen.DriverFolderWrite = write(filepath.Join(sight.DriverFolder, "probe"))
	}
	return seen
}

// open is how the kernel answers: "ok" or the error's name. A simulated device
// that may be opened has nobody behind it, which is ENXIO.
func open(path string) string {
	fd, err := unix.Open(path, unix.O_RDWR, 0)
	if err == nil {
		unix.Close(fd)
	}
	return name(err)
}

func makeAndOpen(major uint32, minor int) string {
	path := fmt.Sprintf("/self-made-%d", minor)
	defer os.Remove(path)
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(major, uint32(minor)))); err != nil {
		return "mknod: " + name(err)
	}
	return open(path)
}

func write(path string) string {
	err := os.WriteFile(path, nil, 0o600)
	return name(err)
}

func name(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	default:
		return strings.TrimSpace(err.Error())
	}
}

func answer(port int) {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(conn, "hello")
			conn.Close()
		}
	}()
}
