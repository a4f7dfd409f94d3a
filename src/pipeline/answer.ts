// What a request is answered with: a `Response`, or on the busiest paths a plain object, because the headers and the stream
// of a `Response` cost as much as the rest of the answer (docs/decisions/0083).

export type AnswerHeaders = Record<string, string>

/** Where a streamed answer is written to. */
export interface AnswerSink {
  /** A promise if the client's socket takes no more for now; it resolves when everything was taken. */
  write(bytes: Uint8Array): Promise<void> | undefined
  end(last?: Uint8Array): void
}

export interface AnswerStream {
  /** Writes the answer. Called once, unless the client has left before. */
  run(sink: AnswerSink): Promise<void>
  clientLeft(): Promise<void>
}

export class PlainAnswer {
  constructor(
    readonly body: Uint8Array | AnswerStream,
    readonly headers: AnswerHeaders,
  ) {}
}

export type Answer = Response | PlainAnswer

export function setHeader(answer: Answer, name: string, value: string): void {
  if (answer instanceof Response) answer.headers.set(name, value)
  else answer.headers[name] = value
}
