// For tests of the openai-responses dialect: targets, requests rendered and parsed again, and events of a provider.

import type { TargetRules } from '../../src/dialects/canonical/target-rules.ts'
import { renderRequest } from '../../src/dialects/openai-responses/request/render.ts'
import { rendererOf, targetOf } from './translation.ts'

/** Facts of some models: the vectors' gpt56, one that always reasons, one that never does, and a host of few talents. */
export const gpts = {
  gpt56: {
    sampling: 'without-reasoning',
    efforts: ['none', 'low', 'medium', 'high', 'xhigh'],
    thinksByDefault: true,
    cacheStyle: 'breakpoint',
  },
  o3: { sampling: 'none', efforts: ['low', 'medium', 'high'], thinksByDefault: true, cacheStyle: 'implicit' },
  gpt41: { efforts: [], thinksByDefault: false, cacheStyle: 'implicit' },
  plain: {
    efforts: [],
    midSystem: false,
    customTools: false,
    allowedTools: false,
    parallelFlag: false,
    systemRole: 'system',
  },
} as const satisfies Record<string, TargetRules>

export const issuer = 'acme/openai-responses/gpt-5.6'

export const responsesTarget = targetOf('gpt-x', issuer)
export const { rendered, refusedBy } = rendererOf(renderRequest, responsesTarget)

/** One event as the provider writes it. */
export const sent = (type: string, members: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`

export const created = sent('response.created', { response: { id: 'resp_1', status: 'in_progress', output: [] } })
export const added = (output_index: number, item: object): string =>
  sent('response.output_item.added', { output_index, item })
export const done = (output_index: number, item: object): string =>
  sent('response.output_item.done', { output_index, item })
export const completed = (response: object = {}): string =>
  sent('response.completed', { response: { id: 'resp_1', status: 'completed', ...response } })
export const incomplete = (reason: string, response: object = {}): string =>
  sent('response.incomplete', {
    response: { id: 'resp_1', status: 'incomplete', incomplete_details: { reason }, ...response },
  })
export const textDelta = (output_index: number, delta: string): string =>
  sent('response.output_text.delta', { output_index, item_id: `msg_${output_index}`, content_index: 0, delta })
export const summaryDelta = (output_index: number, summary_index: number, delta: string): string =>
  sent('response.reasoning_summary_text.delta', { output_index, item_id: `rs_${output_index}`, summary_index, delta })
export const argumentsDelta = (output_index: number, delta: string): string =>
  sent('response.function_call_arguments.delta', { output_index, item_id: `fc_${output_index}`, delta })

export const message = (n: number, ...content: object[]): object => ({
  type: 'message',
  id: `msg_${n}`,
  role: 'assistant',
  content,
})
export const outputText = (text: string): object => ({ type: 'output_text', text, annotations: [] })
export const reasoning = (n: number, summary: readonly string[] = [], encrypted_content?: string): object => ({
  type: 'reasoning',
  id: `rs_${n}`,
  summary: summary.map((text) => ({ type: 'summary_text', text })),
  ...(encrypted_content === undefined ? {} : { encrypted_content }),
})
export const functionCall = (n: number, name = 'f', written = ''): object => ({
  type: 'function_call',
  id: `fc_${n}`,
  call_id: `call_${n}`,
  name,
  arguments: written,
})

/** A summary in two parts, a message, a call with its arguments in pieces; each sent twice, as a provider does. */
export const recorded: string = [
  created,
  sent('response.in_progress', { response: { id: 'resp_1', status: 'in_progress' } }),
  added(0, reasoning(0)),
  sent('response.reasoning_summary_part.added', { output_index: 0, summary_index: 0, part: { text: '' } }),
  summaryDelta(0, 0, 'Look'),
  summaryDelta(0, 0, 'ing.'),
  sent('response.reasoning_summary_text.done', { output_index: 0, summary_index: 0, text: 'Looking.' }),
  sent('response.reasoning_summary_part.done', { output_index: 0, summary_index: 0, part: { text: 'Looking.' } }),
  sent('response.reasoning_summary_part.added', { output_index: 0, summary_index: 1, part: { text: '' } }),
  summaryDelta(0, 1, 'Found.'),
  done(0, reasoning(0, ['Looking.', 'Found.'], 'SEALED')),
  added(1, message(1)),
  sent('response.content_part.added', { output_index: 1, content_index: 0, part: outputText('') }),
  textDelta(1, 'Grüße '),
  textDelta(1, '👋'),
  sent('response.output_text.done', { output_index: 1, content_index: 0, text: 'Grüße 👋' }),
  sent('response.content_part.done', { output_index: 1, content_index: 0, part: outputText('Grüße 👋') }),
  done(1, message(1, outputText('Grüße 👋'))),
  added(2, functionCall(2)),
  argumentsDelta(2, '{"a"'),
  argumentsDelta(2, ':1}'),
  sent('response.function_call_arguments.done', { output_index: 2, arguments: '{"a":1}' }),
  done(2, functionCall(2, 'f', '{"a":1}')),
  completed({
    output: [
      reasoning(0, ['Looking.', 'Found.'], 'SEALED'),
      message(1, outputText('Grüße 👋')),
      functionCall(2, 'f', '{"a":1}'),
    ],
    usage: {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 70, cache_write_tokens: 20 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 3 },
      total_tokens: 105,
    },
  }),
].join('')
