// Runs as a separate process: takes the lock of the folder given as argument, says so, and holds it until its input
// ends; or says why it cannot and exits with 1.

import { lockDataFolder } from '../../src/store/folder-lock.ts'
import { StartRefusal } from '../../src/store/start-refusal.ts'

try {
  lockDataFolder(process.argv[2] ?? '')
  console.log('locked')
  await Bun.stdin.text()
} catch (thrown) {
  if (!(thrown instanceof StartRefusal)) throw thrown
  console.log(thrown.message)
  process.exitCode = 1
}
