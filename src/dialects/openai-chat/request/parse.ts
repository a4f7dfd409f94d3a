// Parses a Chat Completions body into a Conversation. Warns about omissions, refuses what it cannot interpret, and
// checks nothing that depends on the model.

import type { Failure } from '../../../kernel/failure.ts'
import { utf8Text } from '../../../wire/bytes.ts'
import type { Conversation, Places } from '../../canonical/conversation.ts'
import type { Envelope, ParsedRequest } from '../../canonical/translation.ts'
import { RequestFields, readRequest } from '../../request/fields.ts'
import { createParseContext, type ParseContext, readMark } from './context.ts'
import { parseMessages } from './parse-messages.ts'
import {
  parseOutputFormat,
  parseReasoning,
  parseSampling,
  parseServiceTier,
  parseStop,
  parseUnsupported,
} from './parse-settings.ts'
import { impliesOneCall, parseToolChoice, parseTools } from './parse-tools.ts'

export function parseRequest(envelope: Envelope): ParsedRequest | Failure {
  return readRequest(() => {
    const body = RequestFields.of(JSON.parse(utf8Text(envelope.body, 0, envelope.body.length)), '')
    const context = createParseContext(envelope)
    const conversation = parseConversation(body, envelope, context)
    return { conversation, warnings: context.warnings.list }
  })
}

function parseConversation(body: RequestFields, envelope: Envelope, context: ParseContext): Conversation {
  const reasoning = parseReasoning(body)
  parseUnsupported(body, context)
  noteCapPair(body, context)
  return {
    ...parseMessages(body, context),
    tools: parseTools(body, context),
    ...parseToolChoice(body),
    sampling: parseSampling(body, context),
    outputCap: envelope.outputCap,
    stop: parseStop(body, context),
    reasoning: reasoning?.wish,
    outputFormat: parseOutputFormat(body, context),
    endUserId: body.optionalText('safety_identifier') || body.optionalText('user') || undefined,
    serviceTier: parseServiceTier(body, context),
    verbosity: body.optionalWord('verbosity', ['low', 'medium', 'high']),
    promptCacheKey: body.optionalText('prompt_cache_key') || undefined,
    ...parseCacheOptions(body, context),
    automaticCache: readMark(body, context),
    stream: envelope.stream,
    wantsStreamUsage: envelope.wantsStreamUsage,
    unsupported: context.unsupported,
    places: placesOf(body, reasoning?.place),
  }
}

function parseCacheOptions(body: RequestFields, context: ParseContext): Pick<Conversation, 'promptCacheOptions'> {
  const options = body.optionalObject('prompt_cache_options')
  if (!options) return {}
  const onlyMarked = options.optionalText('mode') === 'explicit'
  return { promptCacheOptions: { written: context.rawText(options.at), onlyMarked } }
}

/** If two caps differ, the newer name counts. */
function noteCapPair(body: RequestFields, { warnings }: ParseContext): void {
  const older = body.optionalNumber('max_tokens')
  const newer = body.optionalNumber('max_completion_tokens')
  if (older !== undefined && newer !== undefined && older !== newer) warnings.add('max_tokens_ignored', '/max_tokens')
}

function placesOf(body: RequestFields, reasoning: string | undefined): Places {
  return {
    system: '/messages/0',
    outputCap: body.value('max_completion_tokens') === undefined ? '/max_tokens' : '/max_completion_tokens',
    stop: '/stop',
    outputFormat: '/response_format',
    endUserId: body.optionalText('safety_identifier') ? '/safety_identifier' : '/user',
    serviceTier: '/service_tier',
    parallelTools: impliesOneCall(body) ? '/functions' : '/parallel_tool_calls',
    automaticCache: '/cache_control',
    ...(reasoning === undefined ? {} : { reasoning }),
  }
}
