/**
 * A network of one browser's own, which can be cut: a proxy that all of its requests go through, those of its service
 * workers too, which the browser's own emulation of a lost network does not reach.
 */
import { createServer, request } from "node:http";

/** Starts it. `cut(true)` ends every connection, and answers none. */
export async function startNetwork() {
  let isCut = false;
  const sockets = new Set();
  const server = createServer((incoming, response) => {
    if (isCut) return void incoming.socket.destroy();
    const outgoing = request(incoming.url, { method: incoming.method, headers: incoming.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(response);
    });
    outgoing.on("error", () => response.destroy());
    incoming.on("error", () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    if (isCut) socket.destroy();
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const endAll = () => sockets.forEach((socket) => socket.destroy());
  return {
    port: server.address().port,
    cut: (isOffline) => {
      isCut = isOffline;
      if (isOffline) endAll();
    },
    stop: () => {
      endAll();
      return new Promise((closed) => server.close(closed));
    },
  };
}
