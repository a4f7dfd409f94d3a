import { expect, test } from 'bun:test'
import { createTestClock } from '../../../test/parts/ledger.ts'
import { Failure } from '../../kernel/failure.ts'
import { Secret } from '../../kernel/secret.ts'
import type { DataFolder } from '../../store/data-folder.ts'
import { loadAdminToken } from '../../tenancy/secrets.ts'
import { createAuthorize, createGuessBrake, createTokenCheck } from './authorize.ts'

const token = 'a-token-of-an-operator-1234'

/** Whoever is made to wait waits for ever. */
function openDoor() {
  const authorize = createAuthorize({
    adminToken: loadAdminToken(new Secret(token), {} as DataFolder),
    clock: createTestClock(),
    addressOf: (request) => request.headers.get('x-test-address') ?? undefined,
    pause: () => new Promise(() => {}),
  })
  return async (address: string | undefined, sent: string) => {
    const from: Record<string, string> = address === undefined ? {} : { 'x-test-address': address }
    const headers = { authorization: `Bearer ${sent}`, ...from }
    const found = await authorize(new Request('http://gate/api/keys', { headers }))
    return found instanceof Failure ? found.code : found.name
  }
}

/** Ten wrong ones are answered at once, and 32 wait. */
async function fill(ask: ReturnType<typeof openDoor>, address: string | undefined): Promise<void> {
  for (let wrong = 0; wrong < 10; wrong++) await ask(address, 'wrong')
  for (let wrong = 0; wrong < 32; wrong++) void ask(address, 'wrong')
}

test('A10: guesses from one address are refused there and nowhere else', async () => {
  const ask = openDoor()
  await fill(ask, '192.0.2.1')
  expect(await ask('192.0.2.1', 'wrong')).toBe('LIMIT_EXCEEDED')
  expect(await ask('203.0.113.7', 'wrong')).toBe('UNAUTHORIZED')
  expect(await ask(undefined, 'wrong')).toBe('UNAUTHORIZED')
})

test('A10: the right token passes, whoever guesses from the same address', async () => {
  const ask = openDoor()
  for (const address of ['192.0.2.1', undefined]) {
    await fill(ask, address)
    expect(await ask(address, 'wrong')).toBe('LIMIT_EXCEEDED')
    expect(await ask(address, token)).toBe('management token')
  }
})

test('A10: what only the database knows is counted as a guess before it is looked up', async () => {
  const { checkToken, slowGuess } = createTokenCheck({
    adminToken: loadAdminToken(new Secret(token), {} as DataFolder),
    clock: createTestClock(),
    addressOf: (request) => request.headers.get('x-test-address') ?? undefined,
    pause: () => new Promise(() => {}),
  })
  const from = (address: string) =>
    new Request('http://gate/console/session', { headers: { 'x-test-address': address } })
  for (let free = 0; free < 10; free++) expect(await slowGuess(from('192.0.2.1'))).toBeUndefined()
  for (let waiting = 0; waiting < 32; waiting++) void slowGuess(from('192.0.2.1'))
  expect(await slowGuess(from('192.0.2.1'))).toMatchObject({ code: 'LIMIT_EXCEEDED' })
  // Wrong tokens and links are counted together, and the right token is none.
  expect(await checkToken('wrong', from('192.0.2.1'))).toMatchObject({ code: 'LIMIT_EXCEEDED' })
  expect(await checkToken(token, from('192.0.2.1'))).toBeUndefined()
  expect(await slowGuess(from('203.0.113.7'))).toBeUndefined()
})

function openBrake() {
  const clock = createTestClock()
  const waiting: (() => void)[] = []
  const pauses: number[] = []
  const brake = createGuessBrake({
    clock,
    pause(milliseconds) {
      pauses.push(milliseconds)
      return new Promise((resolve) => waiting.push(resolve))
    },
  })
  return { clock, brake, waiting, pauses }
}

test('A10: the eleventh wrong token of an address within a minute is answered a second late', async () => {
  const { brake, clock, pauses } = openBrake()
  for (let wrong = 1; wrong <= 10; wrong++) await brake.afterWrong('a')
  await brake.afterWrong('b')
  expect(pauses).toEqual([])
  void brake.afterWrong('a')
  expect(pauses).toEqual([1000])
  clock.advance(60_000)
  void brake.afterWrong('b')
  expect(pauses).toEqual([1000])
})

test('A10: while 32 wrong ones wait, no more of that address are kept waiting, and others are', async () => {
  const { brake, waiting } = openBrake()
  for (let wrong = 1; wrong <= 10; wrong++) await brake.afterWrong('a')
  const answers = Array.from({ length: 31 }, () => brake.afterWrong('a'))
  expect(brake.admits('a')).toBe(true)
  answers.push(brake.afterWrong('a'))
  expect([brake.admits('a'), brake.admits('b')]).toEqual([false, true])
  for (const resolve of waiting) resolve()
  await Promise.all(answers)
  expect(brake.admits('a')).toBe(true)
})

test('ten thousand addresses are remembered, and the oldest goes first', async () => {
  const { brake, pauses } = openBrake()
  for (let wrong = 1; wrong <= 10; wrong++) await brake.afterWrong('first')
  for (let address = 0; address < 10_000; address++) await brake.afterWrong(`next-${address}`)
  await brake.afterWrong('first')
  expect(pauses).toEqual([])
})
