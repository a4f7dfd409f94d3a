// The fake provider speaks up for tests that would pass without having shown anything.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { startUpstream } from './upstream.ts'

const fine = 'HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\nok'

test('setting a handler throws once if the handler before it was never called', async () => {
  const upstream = startUpstream((_, reply) => reply.write(fine))
  upstream.handle((_, reply) => reply.write(fine))
  expect(() => upstream.handle((_, reply) => reply.write(fine), 'stay unasked')).toThrow('no call came')
  upstream.handle((_, reply) => reply.write(fine))
  expect(await (await fetch(upstream.url)).text()).toBe('ok')
  upstream.handle(() => {})
  upstream.stop()
})

test.each(['', 'async '])('an error thrown by a handler fails the test (%p)', async (form) => {
  const script = `
    import { startUpstream } from ${JSON.stringify(join(import.meta.dir, 'upstream.ts'))}
    const upstream = startUpstream(${form}(_, reply) => { reply.cut(); throw new Error('thrown by the handler') })
    await fetch(upstream.url).catch(() => {})
    upstream.stop()`
  const child = Bun.spawn([process.execPath, '-e', script], { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  expect(await child.stderr.text()).toContain('thrown by the handler')
  expect(await child.exited).toBe(1)
})
