import { expect, test } from 'bun:test'
import { received } from '../../../test/parts/http.ts'
import { createTestClock } from '../../../test/parts/ledger.ts'
import { Failure } from '../../kernel/failure.ts'
import { Secret } from '../../kernel/secret.ts'
import type { DataFolder } from '../../store/data-folder.ts'
import { loadAdminToken } from '../../tenancy/secrets.ts'
import { createAuthorize, createGuessBrake, createTokenCheck } from './authorize.ts'

const token = 'a-token-of-an-operator-1234'

/** Delayed answers never come. */
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
    const found = await authorize(received(new Request('http://gate/api/keys', { headers })))
    return found instanceof Failure ? found.code : found.name
  }
}

/** Ten wrong ones are answered at once, and 32 wait. */
async function fill(ask: ReturnType<typeof openDoor>, address: string | undefined): Promise<void> {
  for (let wrong = 0; wrong < 10; wrong++) await ask(address, 'wrong')
  for (let wrong = 0; wrong < 32; wrong++) void ask(address, 'wrong')
}

test('A10: refuses guesses from one address without affecting others', async () => {
  const ask = openDoor()
  await fill(ask, '192.0.2.1')
  expect(await ask('192.0.2.1', 'wrong')).toBe('LIMIT_EXCEEDED')
  expect(await ask('203.0.113.7', 'wrong')).toBe('UNAUTHORIZED')
  expect(await ask(undefined, 'wrong')).toBe('UNAUTHORIZED')
})

test('A10: accepts the right token while others guess from the same address', async () => {
  const ask = openDoor()
  for (const address of ['192.0.2.1', undefined]) {
    await fill(ask, address)
    expect(await ask(address, 'wrong')).toBe('LIMIT_EXCEEDED')
    expect(await ask(address, token)).toBe('management token')
  }
})

test('A10: counts a secret that only the database knows as a guess before it is looked up', async () => {
  const { checkToken, slowGuess } = createTokenCheck({
    adminToken: loadAdminToken(new Secret(token), {} as DataFolder),
    clock: createTestClock(),
    addressOf: (request) => request.headers.get('x-test-address') ?? undefined,
    pause: () => new Promise(() => {}),
  })
  const from = (address: string) =>
    received(new Request('http://gate/console/session', { headers: { 'x-test-address': address } }))
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

test('A10: delays the answer to the eleventh wrong token of an address within a minute by a second', async () => {
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

test('A10: refuses further guesses of an address at once while 32 of them wait, but not those of others', async () => {
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

test('remembers ten thousand addresses and forgets the oldest first', async () => {
  const { brake, pauses } = openBrake()
  for (let wrong = 1; wrong <= 10; wrong++) await brake.afterWrong('first')
  for (let address = 0; address < 10_000; address++) await brake.afterWrong(`next-${address}`)
  await brake.afterWrong('first')
  expect(pauses).toEqual([])
})
