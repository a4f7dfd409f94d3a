// How a gateway is started by hand: options for one start, and the commands that find it by its data folder; and as
// somebody does who works on it.

import { afterEach, expect, test } from 'bun:test'
import { appendFileSync, cpSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createThrowAwayFolder } from '../parts/engines.ts'
import { createSite, root } from './site.ts'

type Child = Bun.Subprocess<'ignore', 'pipe', 'pipe'>

let child: Child | undefined
/** Before its folder goes, into which it may still write. */
async function endChild(): Promise<void> {
  child?.kill('SIGKILL')
  await child?.exited
}
afterEach(endChild)

/** Where it listens, each time that it says so. */
async function* addressesOf({ stdout }: Child): AsyncGenerator<string> {
  let text = ''
  for await (const bytes of stdout) {
    text += Buffer.from(bytes).toString()
    for (const [line, url = ''] of text.matchAll(/listening on (http:\S+?)["\s].*\n/g)) {
      yield url
      text = text.slice(text.indexOf(line) + line.length)
    }
  }
}

test('options stand above variables and the file; commands find the gateway where it is', async () => {
  using site = createSite()
  const data = join(site.folder, 'elsewhere')
  child = site.spawn(['--port', '0', '--host=127.0.0.1', '--data', 'elsewhere', '--json'], { TOLLGATE_PORT: '1' })
  const { value: url } = await addressesOf(child).next()
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d{3,4}$/)
  expect(readFileSync(join(data, 'address'), 'utf8')).toBe(`${url}\n`)
  const wallet = await site.run(['wallet', '--json'], { TOLLGATE_DATA: data })
  expect([wallet.exit, JSON.parse(wallet.out)]).toEqual([0, expect.objectContaining({ balance: '5.00' })])
  // The environment of a command applies to that command.
  const elsewhere = await site.run(['wallet'], { TOLLGATE_DATA: data, TOLLGATE_PORT: '1' })
  expect([elsewhere.exit, elsewhere.err]).toEqual([1, expect.stringContaining('http://127.0.0.1:1')])
  await endChild()
})

test('serve refuses invalid options before it touches anything', async () => {
  using site = createSite()
  const refused = async (...args: string[]) => {
    const { exit, err } = await site.run(args)
    return [exit, err.split('\n')[0]]
  }
  expect(await refused('serve', '--port', '65536')).toEqual([
    2,
    'tollgate: --port must be a number from 0 to 65535, not "65536".',
  ])
  expect(await refused('--prot', '80')).toEqual([2, 'tollgate: there is no option --prot. Did you mean --port?'])
})

test('npm run dev serves, and once more after a file has changed', async () => {
  using folder = createThrowAwayFolder()
  for (const part of ['src', 'package.json', 'tsconfig.json', 'tollgate.schema.json']) {
    cpSync(join(root, part), join(folder.path, part), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'))
  const script = JSON.parse(readFileSync(join(folder.path, 'package.json'), 'utf8')).scripts.dev
  child = Bun.spawn(['sh', '-c', `${script} --port 0`], {
    cwd: folder.path,
    env: { PATH: `${join(root, 'node_modules', '.bin')}:${process.env.PATH}`, HOME: folder.path },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const addresses = addressesOf(child)
  expect((await addresses.next()).value).toStartWith('http://127.0.0.1:')
  appendFileSync(join(folder.path, 'src/kernel/money.ts'), '// changed\n')
  const { value: url } = await addresses.next()
  expect((await fetch(`${url}/v1/models`)).status).toBe(401)
  await endChild()
})
