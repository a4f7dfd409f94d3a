// What may happen next on a connection, as one table (connection.ts).

export type State =
  /** No request has begun, and the client has taken every answer. */
  | 'idle'
  /** Part of the head of a request has arrived. */
  | 'head'
  /** A request is being served and its body is still arriving. */
  | 'receiving'
  /** A request is being served and has arrived completely. */
  | 'received'
  /** A request is being served whose body is not HTTP, came too slowly, or found no room. */
  | 'broken'
  /** A request was answered before its body had arrived; the rest is thrown away. */
  | 'discarding'
  /** A request was answered; the next one waits for the client to take the answer. */
  | 'flushing'
  /** A WebSocket without a message. */
  | 'upgraded'
  /** Part of a message has arrived on a WebSocket. */
  | 'message'
  /** A message of a WebSocket is being answered. */
  | 'turn'
  /** The last answer was written; the client has not taken all of it. */
  | 'closing'
  /** The sending side is closed; the client has yet to close its own. */
  | 'lingering'
  | 'closed'

export type Event =
  /** The first bytes of a head, or of a message, have arrived. */
  | 'begin'
  /** A head has arrived, and its request is served. */
  | 'request'
  /** The whole request has arrived. */
  | 'complete'
  /** What has arrived is not HTTP, or a request that is not served; or its body came too slowly, or found no room. */
  | 'fault'
  /** The answer was written completely, and the connection is kept. */
  | 'answer'
  /** The same, and the connection is not kept. */
  | 'last answer'
  /** The connection became a WebSocket. */
  | 'upgrade'
  /** A whole message has arrived. */
  | 'message'
  /** The client has taken everything, and the next request may be read. */
  | 'taken'
  /** The server stops. */
  | 'stop'

interface Row {
  /** What happens to bytes that arrive. */
  readonly bytes: 'read' | 'keep' | 'drop' | 'frames'
  /** Whether nothing happens before the client sends something or takes its answer. */
  readonly waits: boolean
  /** Whether a request has arrived and is being answered. */
  readonly runs: 0 | 1
  /** An event that is missing here cannot happen; if it does, that is a defect. */
  readonly next: Readonly<Partial<Record<Event, State>>>
}

/** Beside these, every state becomes `closed` when either side closes the connection. */
export const table: Readonly<Record<State, Row>> = {
  idle: {
    bytes: 'read',
    waits: true,
    runs: 0,
    next: { begin: 'head', request: 'receiving', fault: 'closing', stop: 'closing' },
  },
  head: { bytes: 'read', waits: true, runs: 0, next: { request: 'receiving', fault: 'closing', stop: 'head' } },
  receiving: {
    bytes: 'read',
    waits: true,
    runs: 0,
    next: {
      complete: 'received',
      fault: 'broken',
      answer: 'discarding',
      'last answer': 'closing',
      stop: 'receiving',
    },
  },
  received: {
    bytes: 'keep',
    waits: false,
    runs: 1,
    next: { answer: 'flushing', 'last answer': 'closing', upgrade: 'upgraded', stop: 'received' },
  },
  broken: { bytes: 'drop', waits: false, runs: 1, next: { 'last answer': 'closing', stop: 'broken' } },
  discarding: {
    bytes: 'read',
    waits: true,
    runs: 0,
    next: { complete: 'flushing', fault: 'closing', stop: 'closing' },
  },
  flushing: { bytes: 'keep', waits: true, runs: 0, next: { taken: 'idle', stop: 'closing' } },
  upgraded: {
    bytes: 'frames',
    waits: true,
    runs: 0,
    next: { begin: 'message', message: 'turn', 'last answer': 'closing' },
  },
  message: { bytes: 'frames', waits: true, runs: 0, next: { message: 'turn', 'last answer': 'closing' } },
  turn: { bytes: 'frames', waits: false, runs: 1, next: { answer: 'upgraded', 'last answer': 'closing' } },
  closing: { bytes: 'drop', waits: true, runs: 0, next: { taken: 'lingering', stop: 'closing' } },
  lingering: { bytes: 'drop', waits: false, runs: 0, next: {} },
  closed: { bytes: 'drop', waits: false, runs: 0, next: {} },
}
