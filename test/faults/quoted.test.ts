// A provider quotes the request that it refuses. Whatever a caller writes, only its own request is refused.

import { afterAll, describe, expect, test } from 'bun:test'
import { stopAll, upstreamConfig } from '../parts/gateway.ts'
import { bothSurfaces, chat, messages, type TestSurface } from '../parts/surfaces.ts'
import { startUpstream, type UpstreamCall, type UpstreamReply } from '../parts/upstream.ts'
import { wordsFor } from '../parts/upstream-words.ts'
import { startTenancy } from '../tenancy/tenancy.ts'

/** As OpenAI and Anthropic word it. */
function answer(call: UpstreamCall, reply: UpstreamReply): void | Promise<void> {
  const { messages: turns, ...rest } = call.json() as { messages: { role: string; content: unknown }[] }
  const [first] = turns
  const strange = Object.keys(rest).find((name) => /\s/.test(name))
  const refuse = (status: number, type: string, message: string) =>
    reply.json(status, { type: 'error', error: { type, message } })
  if (strange !== undefined) return refuse(400, 'invalid_request_error', `${strange}: Extra inputs are not permitted`)
  if (first && !['user', 'assistant'].includes(first.role)) {
    return refuse(400, 'invalid_request_error', `Invalid value: '${first.role}'. Supported values are: 'user'.`)
  }
  const [file = '', id = ''] = /"(lost|foreign)-file[^"]*"/.exec(JSON.stringify(first?.content)) ?? []
  if (id === 'lost') return refuse(404, 'not_found_error', `File not found: ${file}`)
  if (id === 'foreign') return refuse(403, 'permission_error', `You do not have permission to access the File ${file}.`)
  return reply.send(200, { 'content-type': 'application/json' }, wordsFor(call).whole)
}

const upstream = startUpstream(answer)
const tenancy = await startTenancy({ config: upstreamConfig(upstream.url) })
afterAll(() => stopAll(tenancy, upstream))

const said = (role: string) => ({ messages: [{ role, content: 'x' }] })
const file = (id: string) => ({
  messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: id } }] }],
})

const attacks: readonly [what: string, surfaces: readonly TestSurface[], body: object, message: string][] = [
  ['the code of an empty account as a role', [chat], said('insufficient_quota'), 'Invalid value'],
  ['the code of an unknown model as a role', [chat], said('model_not_found'), 'Invalid value'],
  [
    'the sentence of an empty account as a member',
    bothSurfaces,
    { 'Your credit balance is too low': 1 },
    'Extra inputs',
  ],
  ['the sentence of an unknown model as a member', bothSurfaces, { 'Invalid model': 1 }, 'Extra inputs'],
  ['the balance of an empty account as a member', bothSurfaces, { 'Insufficient balance': 1 }, 'Extra inputs'],
  ['a model without access as a member', bothSurfaces, { 'Model access is denied due to': 1 }, 'Extra inputs'],
  ['a file that is not there', [messages], file('lost-file'), 'File not found'],
  ['a file of somebody else', [messages], file('foreign-file'), 'permission to access the File'],
]

describe.each(attacks)('%s', (_, surfaces, body, message) => {
  test.each(surfaces.map((surface) => [surface.name, surface] as const))(
    'on the %s surface is reported to its caller and affects no other caller',
    async (_name, surface) => {
      const attacker = await tenancy.tenant({ credit: '1' })
      const victim = await tenancy.tenant({ credit: '1' })
      const refused = await tenancy.generate(surface, attacker.key, surface.model, body)
      expect([refused.status, refused.body.error.code]).toEqual([400, 'INVALID_REQUEST'])
      expect(refused.body.error.message).toContain(message)
      expect((await tenancy.generate(surface, victim.key, surface.model)).status).toBe(200)
      const { data } = await tenancy.must('GET', '/api/catalog')
      const states = (data as { id: string; routes: { health: string }[] }[])
        .filter(({ id }) => id === surface.model)
        .flatMap(({ routes }) => routes.map(({ health }) => health))
      expect(states).toEqual(['healthy'])
    },
  )
})
