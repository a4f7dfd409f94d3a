// Small wallets and large outputs: a cap that the balance cannot pay for is lowered and said so, and what is held is
// strict where there is little. Never an overdraft, never a silent cut.

import { afterAll, describe, expect, test } from 'bun:test'
import { addressed } from '../parts/surfaces.ts'
import { answerWith, usageIn } from '../parts/upstream-words.ts'
import {
  allPaths,
  costly,
  errorMetadata,
  expectPaid,
  nanosIn,
  nanosOut,
  openTill,
  type Path,
  streamedPaths,
  wholePaths,
} from './till.ts'
import { type Purse, usd } from './wallets.ts'

const strictInput = 1000n * nanosIn

const till = await openTill(costly)
afterAll(() => till[Symbol.asyncDispose]())

/** The output cap that the provider got last. */
function lastCap(): unknown {
  const { max_tokens, max_completion_tokens, max_output_tokens, generationConfig } =
    till.upstream.calls.at(-1)?.json() ?? {}
  const { maxOutputTokens } = (generationConfig ?? {}) as { maxOutputTokens?: number }
  return max_tokens ?? max_completion_tokens ?? max_output_tokens ?? maxOutputTokens
}

const large = { max_tokens: 64000 }

function cutOff({ surface, stream }: Path): string {
  // Codex would repeat a stream that is incomplete, and pay again.
  const responses = stream ? '"error":{"code":"insufficient_quota"' : '"reason":"max_output_tokens"'
  const gemini = '"finishReason":"MAX_TOKENS"'
  return { chat: '"finish_reason":"length"', messages: '"stop_reason":"max_tokens"', responses, gemini }[surface.name]
}

describe.each([...allPaths])('$name', (path) => {
  test('a cap beyond the balance is lowered to what it pays for, and the end is an honest length', async () => {
    // $1.00 for the largest prompt, and 700 tokens for the other $7.00
    const purse = await till.wallets.open('8.00')
    till.upstream.handle(answerWith({ input: 9, output: 700 }, ['hello'], { stop: 'length' }))
    const answer = await till.ask(path, large, { purse })
    expect(answer.status).toBe(200)
    expect(lastCap()).toBe(700)
    expect(answer.headers.get('x-tollgate-warnings')).toStartWith('max_tokens_lowered_by_balance=700')
    expect(answer.text).toContain(cutOff(path))
    await expectPaid(till, answer, 9n * nanosIn + 700n * nanosOut, 'reported', purse)
  })

  test('a cap within the balance is left alone', async () => {
    const purse = await till.wallets.open('8.00')
    till.upstream.handle(answerWith({ input: 9, output: 2 }))
    const answer = await till.ask(path, { max_tokens: 700 }, { purse })
    expect(lastCap()).toBe(700)
    expect(answer.headers.get('x-tollgate-warnings')).toBeNull()
  })

  test('the last nano-dollar counts: 256 tokens can be asked for, 255 are not worth a call', async () => {
    till.upstream.handle(answerWith({ input: 9, output: 2 }))
    const enough = await till.wallets.open('3.56')
    expect((await till.ask(path, large, { purse: enough })).headers.get('x-tollgate-warnings')).toContain('=256')
    const calls = till.upstream.calls.length
    const short = await till.wallets.open('3.559999999')
    const refused = await till.ask(path, large, { purse: short })
    expect(refused.status).toBe(402)
    expect(errorMetadata(refused.text)).toEqual({
      reason: 'empty',
      balance: '3.559999999',
      held: '0.00',
      needed: '3.56',
    })
    expect(till.upstream.calls).toHaveLength(calls)
  })

  test('under x-tollgate-strict the cap is kept or the call refused', async () => {
    const purse = await till.wallets.open('8.00')
    const calls = till.upstream.calls.length
    const strictly = { headers: { 'x-tollgate-strict': 'true' } }
    const refused = await till.ask(path, large, { purse, ...strictly })
    expect(refused.status).toBe(402)
    const { reason, needed } = errorMetadata(refused.text) as { reason: string; needed: string }
    expect(reason).toBe('empty')
    // 64,000 cents; and by strict bounds $1.00, of which a stream that is held for piece by piece needs only a guess.
    if (path.stream) expect(Number(needed)).toBeWithin(640, 641)
    else expect(needed).toBe('641.00')
    expect(till.upstream.calls).toHaveLength(calls)
    // It is what it says: so much is enough.
    till.upstream.handle(answerWith({ input: 9, output: 2 }))
    const enough = await till.wallets.open(needed)
    const answer = await till.ask(path, large, { purse: enough, ...strictly })
    expect([answer.status, answer.headers.get('x-tollgate-warnings')]).toEqual([200, null])
  })
})

// On Messages there is no request without a cap.
test.each(allPaths.filter(({ surface }) => surface.name === 'chat'))(
  '$name: a cap that the caller did not send is lowered just so',
  async (path) => {
    const purse = await till.wallets.open('8.00')
    till.upstream.handle(answerWith({ input: 9, output: 2 }))
    const answer = await till.ask(path, {}, { purse })
    expect(lastCap()).toBe(700)
    expect(answer.headers.get('x-tollgate-warnings')).toStartWith('max_tokens_lowered_by_balance=700')
  },
)

describe.each(allPaths.filter(({ surface, provider }) => surface.name === 'messages' && provider === 'messages'))(
  '$name',
  (path) => {
    const thinking = { thinking: { type: 'enabled', budget_tokens: 1024 } }

    test('the cap does not fall below a budget for thinking and one token to say something', async () => {
      till.upstream.handle(answerWith({ input: 9, output: 2 }))
      // $1.00 and 1,025 cents
      const enough = await till.wallets.open('11.25')
      const answer = await till.ask(path, { ...large, ...thinking }, { purse: enough })
      expect(answer.headers.get('x-tollgate-warnings')).toContain('max_tokens_lowered_by_balance=1025')
      const short = await till.wallets.open('11.24')
      const refused = await till.ask(path, { ...large, ...thinking }, { purse: short })
      expect(refused.status).toBe(402)
      expect(JSON.parse(refused.text)).toMatchObject({ error: { metadata: { needed: '11.25' } } })
    })
  },
)

/** A provider that waits; the hold can be looked at meanwhile. */
async function heldWhile(path: Path, members: object, purse: Purse): Promise<bigint> {
  const arrived = Promise.withResolvers<() => void>()
  till.upstream.handle(async (call, reply) => {
    await new Promise<void>((goOn) => arrived.resolve(goOn))
    await answerWith({ input: 9, output: 2 })(call, reply)
  })
  const asking = till.ask(path, members, { purse })
  const goOn = await arrived.promise
  const { held } = await till.wallets.read(purse.workspaceId)
  goOn()
  expect((await asking).status).toBe(200)
  return held
}

describe('the amount held', () => {
  // A body of b bytes counts as ⌈b ÷ 4 × 1.5⌉ tokens while there is room, and as b + 1,024 when there is not.
  const rough = (path: Path, members: object): bigint =>
    BigInt(Math.ceil((addressed(path.surface, till.bodyFor(path, members)).body.length / 4) * 1.5)) * nanosIn

  test.each([...wholePaths])('$name: the whole cap at once', async (path) => {
    const members = { max_tokens: 10_000 }
    const held = await heldWhile(path, members, await till.wallets.open('10000.00'))
    expect(held).toBe(rough(path, members) + 10_000n * nanosOut)
  })

  test.each([...streamedPaths])('$name: 4,096 tokens of it to begin with', async (path) => {
    const members = { max_tokens: 10_000 }
    const held = await heldWhile(path, members, await till.wallets.open('10000.00'))
    expect(held).toBe(rough(path, members) + 4096n * nanosOut)
  })

  test.each([...allPaths])(
    '$name: the strict bound of the prompt where less than twice the estimate is free',
    async (path) => {
      const members = { max_tokens: 256 }
      const estimate = rough(path, members) + 256n * nanosOut
      expect(await heldWhile(path, members, await till.wallets.open(usd(2n * estimate)))).toBe(estimate)
      expect(await heldWhile(path, members, await till.wallets.open(usd(2n * estimate - 1n)))).toBe(
        strictInput + 256n * nanosOut,
      )
    },
  )

  test('n > 1: the output of all choices, and the input once; all of them are paid', async () => {
    const path = wholePaths.find(({ surface, provider }) => surface.name === 'chat' && provider === 'chat') as Path
    const members = { max_tokens: 300, n: 3 }
    const purse = await till.wallets.open('1000.00')
    expect(await heldWhile(path, members, purse)).toBe(rough(path, members) + 3n * 300n * nanosOut)
    till.upstream.handle((_, reply) =>
      reply.json(200, {
        id: 'c',
        object: 'chat.completion',
        choices: [0, 1, 2].map((index) => ({ index, message: { content: 'hey!' }, finish_reason: 'stop' })),
        usage: usageIn('chat', { input: 9, output: 60 }),
      }),
    )
    const answer = await till.ask(path, members, { purse })
    await expectPaid(till, answer, 9n * nanosIn + 60n * nanosOut, 'reported', purse)
    // $1.00 for the prompt and $9.00 for three times 300 tokens; or $7.70 for three times 256, with two cents to spare.
    till.upstream.handle(answerWith({ input: 9, output: 2 }))
    const small = await till.wallets.open('10.00')
    await till.ask(path, members, { purse: small })
    expect(lastCap()).toBe(300)
    const smaller = await till.wallets.open('8.70')
    await till.ask(path, members, { purse: smaller })
    expect(lastCap()).toBe(256)
  })
})
