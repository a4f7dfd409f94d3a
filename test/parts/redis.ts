// A private, throw-away Redis server for one test: on a free port, in memory only, gone when the process ends, however
// it ends. It can be stopped and started again on the same port, and made to hang.

import { freePort } from './free-port.ts'

export interface RedisServer extends AsyncDisposable {
  readonly url: string
  /** As a crash: what it knew is gone. */
  kill(): Promise<void>
  start(): Promise<void>
  /** It keeps its connections and answers nothing. */
  hang(): void
  goOn(): void
}

/** undefined = neither Redis nor Valkey is installed. */
export function findRedisProgram(): string | undefined {
  return Bun.which('redis-server') ?? Bun.which('valkey-server') ?? undefined
}

/** Runs the server until it dies or until the script's input ends, which happens when the test process is gone. */
const keeperScript = `
trap '' INT TERM HUP
"$PROGRAM" --port "$PORT" --bind 127.0.0.1 --save '' --appendonly no --daemonize no >/dev/null 2>&1 &
server=$!
echo $server
exec 3<&0
{ cat <&3 >/dev/null; kill -KILL $server; } 2>/dev/null &
wait $server
`

export async function startRedis(): Promise<RedisServer> {
  const program = findRedisProgram()
  if (program === undefined) throw new Error('Redis is not installed; ask findRedisProgram first')
  const port = freePort()
  let running = await launch(program, port)
  return {
    url: `redis://127.0.0.1:${port}`,
    async kill() {
      process.kill(running.pid, 'SIGKILL')
      await running.keeper.exited
    },
    async start() {
      running = await launch(program, port)
    },
    hang: () => void process.kill(running.pid, 'SIGSTOP'),
    goOn: () => void process.kill(running.pid, 'SIGCONT'),
    async [Symbol.asyncDispose]() {
      await running.keeper.stdin.end()
      await running.keeper.exited
    },
  }
}

async function launch(program: string, port: number) {
  const keeper = Bun.spawn(['sh', '-c', keeperScript], {
    env: { PATH: process.env.PATH ?? '', PROGRAM: program, PORT: String(port) },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  keeper.unref()
  const { value } = await keeper.stdout.getReader().read()
  const pid = Number(new TextDecoder().decode(value))
  await untilReady(port, keeper)
  return { keeper, pid }
}

async function untilReady(port: number, keeper: Bun.Subprocess): Promise<void> {
  for (;;) {
    const client = new Bun.RedisClient(`redis://127.0.0.1:${port}`, { autoReconnect: false })
    try {
      await client.connect()
      return
    } catch {
      if (keeper.exitCode !== null) throw new Error('Redis did not start')
      await Bun.sleep(20)
    } finally {
      client.close()
    }
  }
}
