import { formatUsd, type Nano } from '../../src/kernel/money.ts'
import type { CrashGateway } from './crash-gateway.ts'
import { adminHeaders } from './manage.ts'

interface TopUp {
  readonly key: string
  readonly amount: Nano
}

const pauseMs = 30
/** About a cent at most. */
const amountMax = 10_000_000

export class Payer {
  /** Answered with 201, in nano-dollars. */
  paidIn = 0n
  readonly #unanswered: TopUp[] = []
  #made = 0
  #last: TopUp | undefined

  constructor(readonly dataFolder: string) {}

  /** Pays in again and again until the gateway is gone. */
  async payWhileAlive(gateway: CrashGateway): Promise<void> {
    const path = await this.#path(gateway)
    while (path !== undefined && gateway.isAlive()) {
      const topUp = { key: `topup-${++this.#made}`, amount: randomAmount() }
      if ((await this.#send(gateway, path, topUp)) === 201) this.#credit(topUp)
      else this.#unanswered.push(topUp)
      await Bun.sleep(pauseMs)
    }
  }

  /** Sends what was not answered, and one that was; answers with what is wrong, and how many answers had been lost. */
  async payAgain(gateway: CrashGateway): Promise<{ readonly lost: number; readonly faults: readonly string[] }> {
    const faults: string[] = []
    const lost = this.#unanswered.splice(0)
    const path = await this.#path(gateway)
    if (path === undefined) return { lost: lost.length, faults: ['the workspaces could not be read'] }
    for (const topUp of lost) {
      const status = await this.#send(gateway, path, topUp)
      if (status === 201) this.#credit(topUp)
      else faults.push(`the top-up ${topUp.key} was answered with ${status}`)
    }
    // Not counted again: if it were credited again, the balance would show it.
    if (this.#last) await this.#send(gateway, path, this.#last)
    return { lost: lost.length, faults }
  }

  #credit(topUp: TopUp): void {
    this.paidIn += topUp.amount
    this.#last = topUp
  }

  async #path(gateway: CrashGateway): Promise<string | undefined> {
    try {
      const response = await fetch(`${gateway.url}/api/workspaces`, { headers: adminHeaders(this.dataFolder) })
      const { data } = (await response.json()) as { data: readonly { id: string }[] }
      return data[0] && `/api/workspaces/${data[0].id}/topups`
    } catch {
      return undefined
    }
  }

  /** undefined = no answer came. */
  async #send(gateway: CrashGateway, path: string, { key, amount }: TopUp): Promise<number | undefined> {
    try {
      const response = await fetch(gateway.url + path, {
        method: 'POST',
        headers: { ...adminHeaders(this.dataFolder), 'idempotency-key': key },
        body: JSON.stringify({ amount: formatUsd(amount) }),
      })
      await response.text()
      return response.status
    } catch {
      return undefined
    }
  }
}

function randomAmount(): Nano {
  return BigInt(1 + Math.floor(Math.random() * amountMax)) as Nano
}
