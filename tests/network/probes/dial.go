// SPDX-License-Identifier: Apache-2.0
// dial HOST PORT [udp|tcp RESOLVER]: plain sockets, with Go's own resolver and no libc; it asks the
// one in resolv.conf, or one that is written into the program.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	dialer := net.Dialer{Resolver: &net.Resolver{PreferGo: true}}
	if len(os.Args) == 5 {
		dialer.Resolver.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, os.Args[3], os.Args[4])
		}
	}
	c, err := dialer.Dial("tcp", net.JoinHostPort(os.Args[1], os.Args[2]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(c, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", os.Args[1])
	if n, _ := io.Copy(os.Stdout, c); n == 0 {
		os.Exit(1)
	}
}
