import { expect, test } from 'bun:test'
import { faultFromError } from '../dialects/canonical/faults.ts'
import { classifyFault, type FaultClass, faultTable, refusesReasoning } from './fault.ts'

interface Said {
  readonly type?: string
  readonly code?: string
  readonly message?: string
}

/** By the table of what a provider's answer becomes. */
const rows: readonly [status: number | undefined, said: Said, faultClass: FaultClass][] = [
  [400, { message: 'bad' }, "caller's fault"],
  [422, { message: 'bad' }, "caller's fault"],
  [400, { code: 'content_filter', message: 'filtered' }, "caller's fault"],
  [400, { code: 'model_not_found', message: 'no' }, 'does not know the model'],
  [401, { message: 'no' }, 'refused our credential'],
  [402, { message: 'pay' }, 'out of quota'],
  [403, { message: 'no' }, 'refused our credential'],
  [403, {}, 'refused our credential'],
  [403, { code: 'model_not_found', message: 'no' }, 'does not know the model'],
  [404, { code: 'model_not_found', message: 'no' }, 'does not know the model'],
  [404, { message: 'no' }, 'failing'],
  [404, { code: 'invalid_api_key', message: 'Incorrect API key provided' }, 'refused our credential'],
  [404, { type: 'not_found_error', message: 'File not found: file_1' }, 'lacks what was asked for'],
  // An address that is wrong, a deployment that is not ready: another route may serve.
  [405, { message: 'Method Not Allowed' }, 'failing'],
  [408, {}, 'failing'],
  [409, {}, 'failing'],
  [410, {}, 'failing'],
  [410, { type: 'not_found_error', message: 'The container has expired.' }, 'lacks what was asked for'],
  [412, { code: 'PRECONDITION_FAILED', message: 'no' }, 'failing'],
  [415, {}, 'failing'],
  [414, { message: 'too long' }, "caller's fault"],
  [451, { message: 'forbidden' }, "caller's fault"],
  // A tool server that the caller named, a service tier that it chose: no fault of the route's, and others may do.
  [424, { message: 'Error retrieving tool list from MCP server' }, 'lacks what was asked for'],
  [498, { code: 'capacity_exceeded', message: 'Flex tier capacity exceeded' }, 'lacks what was asked for'],
  // Google's CANCELLED: it was not the caller who did.
  [499, { message: 'The operation was cancelled.' }, 'failing'],
  [413, { message: 'too big' }, 'too large'],
  [429, { message: 'slow down' }, 'throttled'],
  [429, { code: 'insufficient_quota' }, 'out of quota'],
  [400, { message: 'Your credit balance is too low to access the API.' }, 'out of quota'],
  [500, {}, 'failing'],
  [529, { type: 'overloaded_error' }, 'failing'],
  [302, {}, 'redirecting'],
  [undefined, { message: 'the engine fell over' }, 'garbled'],
]

test.each(rows)('a status of %p that says %j is %s', (status, said, faultClass) => {
  expect(classifyFault(faultFromError(status, undefined, said)).class).toBe(faultClass)
})

const tooLong = { message: 'prompt is too long: 210000 tokens > 200000 maximum' }

test.each([400, 413, 422, 500, 502, undefined])(
  'pitfall 147: a prompt that is too long is no fault of the route, under a status of %p either',
  (status) => {
    const { class: faultClass } = classifyFault(faultFromError(status, undefined, tooLong))
    expect(faultClass).toBe("caller's fault")
    expect(faultTable[faultClass].tryNext).toBe(false)
  },
)

test.each([401, 403, 404, 429])('under a status of %p the same words are about something else', (status) => {
  expect(classifyFault(faultFromError(status, undefined, tooLong)).class).not.toBe("caller's fault")
})

test.each([
  [400, { code: 'invalid_encrypted_content', message: 'The encrypted content could not be verified.' }, true],
  [400, { message: 'Corrupted thought signature.' }, true],
  [400, { message: 'messages.1.content.0: Invalid `signature` in `thinking` block' }, true],
  [
    400,
    {
      message:
        'messages.3.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.',
    },
    true,
  ],
  [400, { message: 'messages.1: The final block in an assistant message cannot be `thinking`.' }, true],
  [400, { message: 'The signature of this request is invalid' }, false],
  [400, { message: 'The latest assistant message cannot be modified' }, false],
  [500, { code: 'invalid_encrypted_content', message: 'no' }, false],
])('pitfall 88: a %p that says %j is about reasoning: %p', (status, said, isAbout) => {
  expect(refusesReasoning(faultFromError(status, undefined, said))).toBe(isAbout)
})

test('what a model wrote and nobody could read is asked for once more, then elsewhere', () => {
  const fault = {
    ...faultFromError(400, undefined, { code: 'tool_use_failed', message: 'no' }),
    isChance: true,
  } as const
  expect(classifyFault(fault)).toMatchObject({ class: 'garbled', isRepeatable: true })
  expect(faultTable.garbled.tryNext).toBe(true)
})
