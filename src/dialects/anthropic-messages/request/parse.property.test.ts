import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { messagesEnvelope } from '../../../../test/parts/translation.ts'
import { Failure } from '../../../kernel/failure.ts'
import { parseRequest } from './parse.ts'

/** Words that mean something to the parser, so that chance leads it inside. */
const names = [
  ...['type', 'role', 'content', 'text', 'id', 'name', 'input', 'source', 'data', 'media_type', 'url', 'tool_use_id'],
  ...['thinking', 'signature', 'cache_control', 'ttl', 'citations', 'title', 'is_error', 'tool', 'definition'],
  ...['input_schema', 'schema', 'format', 'effort', 'user_id', 'clear_at', 'caller', 'tool_changes', 'input_examples'],
]
const values = [
  ...['user', 'assistant', 'system', 'text', 'image', 'document', 'tool_use', 'tool_result', 'thinking', 'compaction'],
  ...['search_result', 'base64', 'content', 'file', 'tool_addition', 'tool_definition', 'custom', 'server_tool_use'],
]
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.constantFrom<unknown>(...values, null, true, 0, 1.5, ''),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...names), tie('json'), { maxKeys: 5 }),
  ),
}))
const field = fc.constantFrom(
  ...['system', 'tools', 'tool_choice', 'thinking', 'output_config', 'output_format', 'metadata', 'stop_sequences'],
  ...['cache_control', 'service_tier', 'speed', 'top_p', 'container', 'unknown'],
)

test('reads every body or refuses it with a place, and never throws', () => {
  fc.assert(
    fc.property(fc.array(json, { minLength: 1, maxLength: 4 }), fc.dictionary(field, json), (messages, fields) => {
      // Bodies that the envelope refuses before the parser sees them.
      if (fields.system !== undefined && typeof fields.system !== 'string' && !Array.isArray(fields.system)) return
      if (fields.tools !== undefined && fields.tools !== null && !Array.isArray(fields.tools)) return
      const request = parseRequest(messagesEnvelope({ messages, ...fields }))
      if (request instanceof Failure) {
        expect(request.code).toBe('INVALID_REQUEST')
        expect(request.facts.param).not.toBe('')
      }
    }),
    { numRuns: 800 },
  )
})
