--- A poller that uses WSAPoll, on Windows. WSAPoll has the same arguments and results as poll, so the code is the same.

return require "framewire.poller.poll"
