// The Messages wire, assembled.

import type { Wire } from '../wire.ts'
import { checkRequest } from './check-request.ts'
import { readPrompt } from './read-prompt.ts'
import { renderRefusal } from './render-refusal.ts'
import { renderReply } from './render-reply.ts'
import { streamReply } from './stream-reply.ts'

export const messagesWire: Wire = {
  requestIdHeader: 'request-id',
  checkRequest,
  readPrompt,
  renderReply,
  streamReply,
  renderRefusal,
}
