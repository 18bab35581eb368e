// SPDX-License-Identifier: Apache-2.0
// URL: with HttpClient and with URLConnection, neither told of a proxy.
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Fetch {
	public static void main(String[] args) throws Exception {
		HttpRequest request = HttpRequest.newBuilder(URI.create(args[0])).build();
		System.out.println(HttpClient.newHttpClient()
				.send(request, HttpResponse.BodyHandlers.ofString()).body());
		System.out.println(new String(new URL(args[0]).openStream().readAllBytes()));
	}
}
