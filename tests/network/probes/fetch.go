// SPDX-License-Identifier: Apache-2.0
// fetch URL: with net/http, as most programs in Go do it.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	r, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	body, _ := io.ReadAll(r.Body)
	fmt.Print(string(body))
	if r.StatusCode != 200 {
		os.Exit(1)
	}
}
