/** The client's socket, as far as a generation may touch it. */
export interface Connection {
  /** The runtime closes silent connections; a generation may be silent for minutes. */
  keepOpen(): void
  /** Back to the usual idle limit. */
  rearm(): void
  /** Frees the socket of a client that no longer reads. */
  drop(): void
  /** Where the client's connection comes from; undefined = it is gone. */
  address(): string | undefined
}
