// SPDX-License-Identifier: Apache-2.0
// PORT CERTIFICATE KEY: a TLS server that prints the name in each hello.
package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
)

func main() {
	pair, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
	if err != nil {
		panic(err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{pair},
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			fmt.Println("hello", h.ServerName)
			return nil, nil
		},
	}
	listener, err := net.Listen("tcp", ":"+os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("up")
	for {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go func() {
			_ = tls.Server(conn, config).Handshake()
			conn.Close()
		}()
	}
}
