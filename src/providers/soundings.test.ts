import { afterEach, expect, test } from 'bun:test'
import { holeTest, openBlackHole } from '../../test/parts/black-hole.ts'
import { createSoundings, type SoundedAddress, type Soundings } from './soundings.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

function sounding(isProxied = false): Soundings {
  const soundings = createSoundings({ isProxied })
  open.push(() => soundings.close())
  return soundings
}

const at = (baseUrl: string): SoundedAddress => ({ provider: {}, endpoint: { baseUrl } })

/** Takes connections, and says nothing. */
function startListener() {
  const seen = { connections: 0 }
  const onOpen = () => void seen.connections++
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { open: onOpen, data() {} } })
  open.push(() => server.stop(true))
  return { seen, port: server.port, stop: () => server.stop(true) }
}

holeTest('who neither takes nor refuses a connection is silent once the time for one is over', async () => {
  const hole = await openBlackHole()
  open.push(() => hole.stop())
  const soundings = sounding()
  const address = at(`http://127.0.0.1:${hole.port}/v1`)
  expect(soundings.isSilent(address, 3000, 10_000)).toBe(false)
  // Time enough for a connection on this machine, had there been one to be made.
  await Bun.sleep(50)
  expect(soundings.isSilent(address, 3000, 12_999)).toBe(false)
  expect(soundings.isSilent(address, 3000, 13_000)).toBe(true)
  // The next who asks is told at once, until it is time to look again.
  expect(soundings.isSilent(address, 3000, 28_000)).toBe(true)
  expect(soundings.isSilent(address, 3000, 28_001)).toBe(false)
})

holeTest('what comes from there by another call is a word, too', async () => {
  const hole = await openBlackHole()
  open.push(() => hole.stop())
  const soundings = sounding()
  const address = at(`http://127.0.0.1:${hole.port}`)
  soundings.isSilent(address, 3000, 0)
  soundings.heard(address)
  expect(soundings.isSilent(address, 3000, 3000)).toBe(false)
})

test('who takes a connection is there, whatever its program is busy with', async () => {
  const { port, seen } = startListener()
  const soundings = sounding()
  const addresses = [at(`http://127.0.0.1:${port}`), at(`https://127.0.0.1:${port}`)]
  for (const address of addresses) soundings.isSilent(address, 3000, 0)
  while (seen.connections < 2) await Bun.sleep(1)
  for (const address of addresses) while (soundings.isSilent(address, 3000, 3000)) await Bun.sleep(1)
  expect(addresses.map((address) => soundings.isSilent(address, 3000, 18_000))).toEqual([false, false])
})

test('a refusal is a word: who goes on serving may take nobody new', async () => {
  const { port, stop } = startListener()
  stop()
  const soundings = sounding()
  const address = at(`http://127.0.0.1:${port}`)
  soundings.isSilent(address, 3000, 0)
  while (soundings.isSilent(address, 3000, 3000)) await Bun.sleep(1)
  expect(soundings.isSilent(address, 3000, 18_000)).toBe(false)
})

test('all who wait share one connection', async () => {
  const { port, seen } = startListener()
  const soundings = sounding()
  for (let asked = 0; asked < 100; asked++) soundings.isSilent(at(`http://127.0.0.1:${port}`), 3000, asked)
  while (seen.connections === 0) await Bun.sleep(1)
  await Bun.sleep(20)
  expect(seen.connections).toBe(1)
})

test('nothing is dialled behind a proxy, nor where a provider brings its own way', async () => {
  const { port, seen } = startListener()
  const address = at(`http://127.0.0.1:${port}`)
  const transport = () => Promise.reject(new Error('not called'))
  sounding(true).isSilent(address, 3000, 0)
  sounding().isSilent({ ...address, provider: { transport } }, 3000, 0)
  sounding().isSilent(address, 3000, 0)
  while (seen.connections === 0) await Bun.sleep(1)
  await Bun.sleep(20)
  expect(seen.connections).toBe(1)
})
