// Runs as a separate process: takes the lock of the folder given as argument, says so, and holds it until its input
// ends; or says why it cannot and exits with 1.

import { lockDataFolder } from '../../src/store/folder-lock.ts'
import { StartRefusal } from '../../src/store/start-refusal.ts'

try {
  const lock = lockDataFolder(process.argv[2] ?? '')
  console.log('locked')
  await Bun.stdin.text()
  // Held until here: a lock that nothing refers to is closed when its memory is collected.
  lock.release()
} catch (thrown) {
  if (!(thrown instanceof StartRefusal)) throw thrown
  console.log(thrown.message)
  process.exitCode = 1
}
