// Turns on a WebSocket (https://www.openresponses.org, 2026-04-24; https://developers.openai.com/api/docs/guides/websocket-mode):
// a message is the body of a request with a type, and the events of its answer are messages without the framing of a stream.

import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { utf8Text } from '../../wire/bytes.ts'
import { JsonEdits } from '../../wire/json.ts'
import { parseRecord, recordOf } from '../canonical/json.ts'
import type { Turn, Turns } from '../dialect.ts'
import { readMembers } from '../request/fields.ts'

const encoder = new TextEncoder()

export const turns: Turns = {
  read(message) {
    const body = encoder.encode(message)
    const members = readMembers(body)
    if (members instanceof Failure) return members
    const type = members.get('type')
    if (type?.string !== 'response.create') {
      return invalidRequest('`type`: each message starts a turn, with the type `response.create`.', 'type')
    }
    if (members.get('stream_id')) {
      return invalidRequest('`stream_id`: a connection answers one turn after another. Leave it out.', 'stream_id')
    }
    const edits = new JsonEdits(body)
    edits.remove(type)
    const generate = members.get('generate')
    if (generate) edits.remove(generate)
    edits.put(members, 'stream', 'true')
    const turn: Turn = {
      body: edits.apply(),
      previousId: members.get('previous_response_id')?.string,
      isWarmUp: generate?.kind === 'false',
    }
    return turn
  },
  eventIn: (data) => (data === '[DONE]' ? undefined : data),
  renderError(status, headers, body) {
    const { error } = parseRecord(utf8Text(body, 0, body.length)) ?? {}
    const { param, code } = recordOf(error)
    // The one code of the standard that clients act on: they send the whole conversation.
    const isUnknown = status === 400 && param === 'previous_response_id'
    const shown = { ...recordOf(error), code: isUnknown ? 'previous_response_not_found' : code }
    return JSON.stringify({ type: 'error', status, error: shown, headers })
  },
  tooOld() {
    const message = 'This connection is an hour old. Connect again, and send the whole conversation.'
    const error = { type: 'invalid_request_error', code: 'websocket_connection_limit_reached', message, param: null }
    return JSON.stringify({ type: 'error', status: 400, error })
  },
}
